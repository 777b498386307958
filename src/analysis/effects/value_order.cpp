#include "analysis/effects/value_order.h"

#include <algorithm>
#include <set>

namespace klap::analysis {

void ValueOrder::add(Value a, Value b, bool strict) {
  auto& above = above_[a];
  if (std::find(above.begin(), above.end(), std::pair(b, strict)) == above.end())
    above.emplace_back(b, strict);
}

void ValueOrder::equal(Value a, Value b) {
  at_most(a, b);
  at_most(b, a);
}

void ValueOrder::greater_of(Value result, Value a, Value b) {
  at_most(a, result);
  at_most(b, result);
  choices_.push_back({result, a, b, true});
}

void ValueOrder::lesser_of(Value result, Value a, Value b) {
  at_most(result, a);
  at_most(result, b);
  choices_.push_back({result, a, b, false});
}

bool ValueOrder::leads(Value a, Value b, bool strict) const {
  std::set<std::pair<Value, bool>> seen;
  std::vector<std::pair<Value, bool>> work = {{a, false}};
  while (!work.empty()) {
    const auto [value, strictly] = work.back();
    work.pop_back();
    const auto above = above_.find(value);
    if (above == above_.end()) continue;
    for (const auto& [next, more] : above->second) {
      const bool s = strictly || more;
      if (next == b && (s || !strict)) return true;
      if (seen.emplace(next, s).second) work.emplace_back(next, s);
    }
  }
  return false;
}

bool ValueOrder::known_different(Value a, Value b) const {
  return std::any_of(different_.begin(), different_.end(),
                     [&](const auto& d) { return d == std::pair(a, b) || d == std::pair(b, a); });
}

// Draws conclusions once. From a <= b and a != b follows a < b. The lesser of two different values is less
// than the greater. A value above both of two values is above the greater of them.
bool ValueOrder::conclude() {
  bool grew = false;
  const auto learn = [&](Value a, Value b, bool strict) {
    if (leads(a, b, strict)) return;
    add(a, b, strict);
    grew = true;
  };
  for (const auto& [a, b] : std::vector(different_)) {
    if (leads(a, b, false)) learn(a, b, true);
    if (leads(b, a, false)) learn(b, a, true);
  }
  for (const Choice& c : choices_) {
    for (const Choice& d : choices_) {
      const bool same = (c.a == d.a && c.b == d.b) || (c.a == d.b && c.b == d.a);
      if (!c.greater && d.greater && same && known_different(c.a, c.b)) learn(c.result, d.result, true);
    }
    std::set<Value> others;
    for (const auto& [value, above] : above_) {
      others.insert(value);
      for (const auto& entry : above) others.insert(entry.first);
    }
    for (Value v : others) {
      if (v == c.result) continue;
      if (c.greater && is_at_most(c.a, v) && is_at_most(c.b, v)) learn(c.result, v, false);
      if (!c.greater && is_at_most(v, c.a) && is_at_most(v, c.b)) learn(v, c.result, false);
    }
  }
  return grew;
}

void ValueOrder::close() {
  // Two iterations are enough for the patterns of real code; more would only find more.
  for (int round = 0; round < 4 && conclude(); ++round) {
  }
}

bool ValueOrder::impossible() const {
  return std::any_of(above_.begin(), above_.end(),
                     [&](const auto& entry) { return leads(entry.first, entry.first, true); }) ||
         std::any_of(different_.begin(), different_.end(), [&](const auto& d) {
           return d.first == d.second || (is_at_most(d.first, d.second) && is_at_most(d.second, d.first));
         });
}

}  // namespace klap::analysis
