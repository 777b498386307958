// Can a barrier run between two launches of one block?
//
// CUDA runs what one block launches into its NULL stream in the order of the launches. Launches of different
// threads have no order, so overlapping their children breaks no promise. A barrier between them changes
// that: then the program has asked for one child before the other.
//
// The argument. A barrier that holds all threads of a block (`bar.sync N` without a count, a cluster barrier)
// completes its g-th time when every thread that has not ended has arrived for the g-th time. Let launch A of
// one thread come before launch B of another by way of that barrier. Then for some g the first thread
// launches before its g-th arrival (or ends before it). The second thread launches after its g-th return:
//     arrivals before A  <  g  <=  returns before B.
// If the most returns on any path to B are not more than the least arrivals on any path to A, there is no
// such g. Equal counts suffice as well. All paths to A or B may have the same number. Or the numbers depend
// only on decisions at which all threads of the block agree; then all threads that get to either have the
// same number. Two launches of one thread are covered by this inequality, too.
//
// The answer is `Unknown` if counting is not enough. Such cases are barriers with a count (the threads
// that take part are not known), barriers whose number is not constant, mbarrier objects, barriers in called
// functions, and indexed branches without targets. They do not matter where they cannot run after A or cannot
// run before B.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/effects/effects.h"
#include "analysis/facts/answer.h"
#include "analysis/facts/facts.h"

namespace klap::analysis {

// An instruction at which threads of a block or cluster meet, in the kernel itself.
struct BarrierUse {
  uint32_t instruction = 0;
  EffectKind kind{};  // BlockBarrier, PartialBarrier, ClusterBarrier, BarrierObject; IndirectCall for a call
  std::optional<std::string> number;  // names the barrier where all threads take part; else uses cannot be
                                      // counted
  bool arrives = true, waits = true;
  std::string text;  // for messages: "bar.sync 0 (line 7)"
};
// In text order. `graph` holds the kernel and what it calls.
std::vector<BarrierUse> find_barriers(const FunctionFacts& kernel, const CallGraph& graph);

// Tells whether a barrier can put the launch at instruction `a` before the one at `b`, by any two threads of
// a block or by one.
Finding barrier_between(const FunctionFacts& kernel, uint32_t a, uint32_t b);

// One line for each pair of launch sites.
std::string print_barriers(const FunctionFacts& kernel);

}  // namespace klap::analysis
