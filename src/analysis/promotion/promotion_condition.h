// This file finds the condition on which a link launches the next one (promotion.h).
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
// tests held for link n - 1. Let T(k) be the outcome of the tests for link k. Link n exists if T(0) to T(n -
// 1) hold. Tests that are the same for all links need no argument. A test that changes must be a comparison
// `V < B` (or its mirror image, for which the argument is the same). B is the same for all links, and
// V(k) = V(0) + k * S modulo 2^w with S > 0, signed or unsigned as the comparison reads it. Let
// W(k) = V(0) + k * S be the exact sum of the value V(0) that is read.
//  - If W(k) is no more than the greatest value MAX, then W(0) <= ... <= W(k) are all read as they are, and
//    W(k) < B says that W(j) < B for all j <= k: T(k) holds exactly if all of T(0) ... T(k) do.
//  - If W(k) > MAX, no link k + 1 exists. Let W(j) be the first above MAX, so that W(j - 1) >= MAX - S + 1.
//    If B <= MAX - S + 1, T(j - 1) does not hold. For S = 1 this bound always holds, else it must be known of
//    B. Then link j does not exist, and no later one. (j > 0, since W(0) was read.)
// So link n exists exactly if T(n - 1) and W(n - 1) <= MAX. ChainCounter states the latter. Only v, which is
// W(k) modulo 2^w, is known; `first` is V(0). If k * S < 2^w, then W(k) <= MAX exactly if first <= v, since
// else v = W(k) - 2^w < V(0). If k * S >= 2^w, the sum is beyond MAX from wherever it begins.
//
// `V <= B` is `V < B + 1` if B + 1 does not wrap around. If it does, the test always holds. If it is the only
// one that changes, the chain then has no end, and its further course does not matter. Otherwise the
// condition is not counted.
// For `V != B` with S = 1 or -1, U = V - B or B - V falls by 1 from link to link, and the test is `U > 0`
// unsigned.
ChainCondition find_condition(const FunctionFacts& kernel, const Site& site,
                              const std::vector<ChainArgument>& arguments);

}  // namespace klap::analysis
