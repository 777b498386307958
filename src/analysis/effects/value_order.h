// ValueOrder holds what is known about the order of a few unnamed values. Facts are a < b, a <= b, a == b, a
// != b, and which values are the greater or the lesser of two others. All values are integers of one
// signedness.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace klap::analysis {

class ValueOrder {
 public:
  using Value = uint32_t;

  void less(Value a, Value b) { add(a, b, true); }
  void at_most(Value a, Value b) { add(a, b, false); }
  void equal(Value a, Value b);
  void differ(Value a, Value b) { different_.emplace_back(a, b); }
  void greater_of(Value result, Value a, Value b);
  void lesser_of(Value result, Value a, Value b);

  // Draws conclusions; to be called before the questions below.
  void close();
  // True if the facts contradict each other.
  [[nodiscard]] bool impossible() const;
  [[nodiscard]] bool is_less(Value a, Value b) const { return leads(a, b, true); }
  [[nodiscard]] bool is_at_most(Value a, Value b) const { return a == b || leads(a, b, false); }

 private:
  struct Choice {
    Value result, a, b;
    bool greater;
  };
  void add(Value a, Value b, bool strict);
  bool conclude();
  [[nodiscard]] bool leads(Value a, Value b, bool strict) const;
  [[nodiscard]] bool known_different(Value a, Value b) const;

  std::map<Value, std::vector<std::pair<Value, bool>>> above_;  // value -> greater ones, strictly or not
  std::vector<std::pair<Value, Value>> different_;
  std::vector<Choice> choices_;
};

}  // namespace klap::analysis
