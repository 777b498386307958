#include "analysis/ranges/opaque_values.h"

#include <fmt/format.h>

#include <algorithm>

namespace klap::analysis {

bool add_operand(Computed& to, const Computed& operand) {
  to.text += " " + operand.text;
  to.is_rounded = to.is_rounded || operand.is_rounded;
  if (to.thread && operand.thread && to.thread != operand.thread) return false;
  if (operand.thread) to.thread = operand.thread;
  return true;
}

size_t OpaqueValues::number_of(const Computed& computed) {
  const auto [found, is_new] = by_text_.emplace(computed.text, values_.size());
  if (is_new) values_.push_back(computed);
  return found->second;
}

Computed OpaqueValues::operand(size_t value) const {
  return {fmt::format("v{}", value), values_[value].thread, values_[value].is_rounded};
}

Computed OpaqueValues::operand(const Expr& number) {
  const auto found = std::ranges::find(numbers_, number);
  const auto place = found - numbers_.begin();
  if (found == numbers_.end()) numbers_.push_back(number);
  return {fmt::format("n{}", place), {}, false};
}

}  // namespace klap::analysis
