// What decides whether a link launches the next one (promotion.h).
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct ChainCondition {
  LinkCondition kind = LinkCondition::AtSite;
  std::vector<ChainTest> tests;
  std::vector<ChainCounter> counters;
  Slice slice;
  std::string text;
};

// The tests are the branches on the way to the launch. Each must be the only one that decides whether what
// follows runs, so that the launch is made exactly if all of them go its way.
//
// The condition is counted if link n, whose arguments must be known by themselves, exists exactly if the
// tests held for link n - 1. Let T(k) be what the tests say for link k, and link n exist if T(0) ... T(n -
// 1). Tests that are the same for all links are no question. A test that changes is to be a comparison `V <
// B` where B is the same for all links and V(k) = V(0) + k * S modulo 2^w, S > 0, read as signed or unsigned
// as the comparison reads it (or the mirror image; the rest is said for this one). Let W(k) = V(0) + k * S be
// the exact sum of the value V(0) that is read.
//  - If W(k) is no more than the greatest value MAX, then W(0) <= ... <= W(k) are all read as they are, and
//    W(k) < B says that W(j) < B for all j <= k: T(k) holds exactly if all of T(0) ... T(k) do.
//  - If W(k) > MAX, no link k + 1 exists: let W(j) be the first above MAX, so that W(j - 1) >= MAX - S + 1.
//  If
//    B <= MAX - S + 1, T(j - 1) does not hold; which is so for S = 1, and else must be known of B. Then link
//    j does not exist, and no later one. (j > 0, since W(0) was read.)
// So link n exists exactly if T(n - 1) and W(n - 1) <= MAX. The latter is what ChainCounter says: it is W(k)
// modulo 2^w that is known, v; `first` is V(0); with k * S < 2^w, W(k) <= MAX exactly if first <= v, since
// else v = W(k) - 2^w < V(0); and k * S >= 2^w leads beyond MAX from wherever it begins.
//
// `V <= B` is `V < B + 1` where B + 1 does not wrap around. Where it does the test always holds. If it is the
// only one that changes the chain has no end then, and it does not matter what becomes of it; else it is not
// counted.
// `V != B`, S = 1 or -1: U = V - B, or B - V, falls by 1 from link to link, and the test is `U > 0` unsigned.
ChainCondition find_condition(const FunctionFacts& kernel, const Site& site,
                              const std::vector<ChainArgument>& arguments);

}  // namespace klap::analysis
