// Values of which only is known how they were computed (block_sum.h).
//
// Two of them are the same value if the same operation made them of the same operands. What a thread loads
// from memory depends on when it loads it. So a loaded value is told apart by its place in what the thread
// does, and only that thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// How a value was computed, as text in which numbers stand for operands.
struct Computed {
  std::string text;
  std::optional<uint32_t> thread;  // the only one that may use it
  bool is_rounded = false;         // it depends on a sum of floating-point numbers
};

// Adds the operand to the text, and what it depends on to the rest. An operand and the value may not be those
// of different threads: false.
bool add_operand(Computed& to, const Computed& operand);

class OpaqueValues {
 public:
  // The number of the value, the same for the same text.
  size_t number_of(const Computed& computed);
  [[nodiscard]] const Computed& operator[](size_t value) const { return values_[value]; }

  // The values as operands of others.
  [[nodiscard]] Computed operand(size_t value) const;
  Computed operand(const Expr& number);

 private:
  std::map<std::string, size_t> by_text_;
  std::vector<Computed> values_;
  std::vector<Expr> numbers_;
};

}  // namespace klap::analysis
