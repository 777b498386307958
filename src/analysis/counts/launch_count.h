// How often one thread launches into one stream.
//
// One thread's launches into one stream run one after another. So a rewrite must know whether a thread
// launches once, a few times or in a loop. The answer is an upper bound over all sites of the kernel that can
// run one after another. It is the longest path through the control flow: a loop with a visible constant trip
// count counts that many times. Any other loop counts as unbounded.
//
// Streams are told apart by what is known of the operand. A register may hold any stream, also one that
// another site names by its constant; a created stream that is private to its thread is none of those.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace klap::analysis {

struct LaunchCount {
  static constexpr uint64_t kUnbounded = ~uint64_t{0};
  uint64_t most = 0;     // kUnbounded: a loop whose iterations are not known
  bool unknown = false;  // there are launches that cannot be seen; `most` then says nothing
  std::string detail;    // why, where the count is unknown or unbounded
};
// "never", "once", "at most 12", "unbounded: DETAIL", "unknown: DETAIL".
std::string to_text(const LaunchCount& count);

// How often a thread can run these instructions (indices into the flow) in total.
LaunchCount count_runs(const FunctionFacts& kernel, const std::vector<uint32_t>& instructions);

struct StreamLaunches {
  std::string stream;  // "NULL", "per-thread", "fire-and-forget", "tail", "created", "unknown"
  std::vector<const Site*> sites;
  LaunchCount count;
};
// One entry for each stream that the kernel launches into. A launch into an unknown stream counts for all of
// them.
std::vector<StreamLaunches> launches_by_stream(const FunctionFacts& kernel);

// One line for each stream.
std::string print_launch_counts(const FunctionFacts& kernel);

}  // namespace klap::analysis
