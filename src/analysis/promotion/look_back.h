// Chains whose links need no more of each other than a combination of values (promotion.h).
//
// Link n's postponed argument is the first link's, combined by one operation with a value of each link from
// the first to n - 1. If the values are known at the overlap's boundary, a link can publish its own before it
// knows its argument. It finds the argument by looking back over the values that the links in front have
// published. The order of memory stays what it was: a link passes its boundary when all links in front of it
// have come to theirs. The launch must order nothing beyond that. So no access between a link's boundary and
// its launch may touch memory that others can see, by the launching thread or by way of a barrier.
//
// The operation must give the same however it is grouped and ordered. Integer sums, minima, maxima and the
// bitwise operations do. Minima and maxima of floating-point numbers do, too: two zeros have a fixed order,
// NaN gives way to any number, and a resulting NaN is always the same one. Floating-point sums do not.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

// Fills in how the postponed arguments are carried, whether the chain looks back, and why not. All other
// facts are there already.
void find_look_back(const FunctionFacts& kernel, ChainFacts& chain);

}  // namespace klap::analysis
