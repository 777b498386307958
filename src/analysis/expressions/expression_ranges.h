// Ranges of expressions (expression.h), for their own implementation: the values that one can have, and how
// the bits of a value are read.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// Numbers of 64 bits, and sums of products of them. A product that does not fit is no range at all.
__extension__ typedef __int128 Wide;

inline uint64_t mask(uint32_t bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
// The low `bits` as a signed number.
inline int64_t as_signed(uint64_t value, uint32_t bits) {
  const uint32_t unused = 64 - bits;
  return static_cast<int64_t>(value << unused) >> unused;
}

Range full_range(uint32_t bits);
Range unsigned_range(uint64_t least, uint64_t most, uint32_t bits);
// The range of a node whose operands have theirs.
Range range_of(const ExprNode& node);
// The least or the most of a range.
Wide wide_bound(const Range& range, Sign sign, bool most);
// True if the sum, over the integers, is what a register of so many bits holds.
bool cannot_wrap(const std::vector<Term>& terms, uint32_t bits, Sign sign);

}  // namespace klap::analysis
