// Chains whose links need no more of each other than a combination of values (promotion.h).
//
// Link n's postponed argument is the first link's, combined by one operation with a value of each link from
// the first to n - 1. If the values are known at the overlap's boundary, a link can publish its own before it
// knows its argument, and find the argument by looking back over what the links in front have published. The
// order of memory stays what it was: a link passes its boundary when all links in front of it have come to
// theirs. For that to be all that the launch would order, nothing between a link's boundary and its launch
// may touch memory that others can see, by the thread that launches or by way of a barrier.
//
// The operation must give the same however it is grouped and ordered: integer sums, minima, maxima and the
// bitwise ones; minima and maxima of floating-point numbers too (of two zeros the order is fixed, NaN gives
// way to any number, and a NaN that results is always the same one), but not their sums.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

// Fills in how the postponed arguments are carried, whether the chain looks back, and why not. The rest of
// the facts is there.
void find_look_back(const FunctionFacts& kernel, ChainFacts& chain);

}  // namespace klap::analysis
