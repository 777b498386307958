// Are two addresses of different launches apart, whichever threads of a block have launched?
//
// Each address is taken apart into
//     base + step * key(thread) + rest,
// where the base is the same for both launches and the key is different for any two launches. The rest varies
// within one child. The accesses are apart if one step is larger than the rest can make up for. The key is
// the launching thread's number, or a slot that a counter has handed out: the results of atomic additions of
// positive constants to one word are different.
//
// Sums of 32 bits that may wrap are widened before they are scaled. The argument holds for them as well. Keys
// are close to each other, so their difference is either small and not 0, or almost 2^32. So many steps must
// not come around to the address where they began.
//
// The step may be a value that is not constant (rows of n elements). Then a comparison before each access
// must bound the rest by the same value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// A value of the child's threads that is at least 0 and below `bound` wherever an access is made.
struct Bounded {
  Expr value, bound;
  Sign sign = Sign::Signed;  // of the comparison
};

// An access as two launches of one block make it; its address in terms of the launch (launch_terms.h).
struct AccessShape {
  Expr address;
  uint32_t bytes = 0;
  std::vector<Bounded> bounded;
};

// Tells which leaves are keys (none if there is no function), and by how much any two of them differ at
// least.
struct Key {
  std::function<bool(const ExprNode&)> is_key;
  uint64_t least_difference = 1;
  uint64_t most = 0;  // the largest key; 0: any value of its width
};

// True if the accesses are apart whenever they belong to launches with different keys.
bool are_disjoint(const AccessShape& a, const AccessShape& b, const Key& key_of_a, const Key& key_of_b);

// True if the accesses are apart whatever the launches are: each is at its own offset from one base.
bool are_at_different_offsets(const AccessShape& a, const AccessShape& b);

}  // namespace klap::analysis
