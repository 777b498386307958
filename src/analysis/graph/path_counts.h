// How often a thread executes certain instructions on its way from a function's entry to certain places, and
// at which branches threads decide about that.
//
// Barriers match by number: the third time one thread arrives at a barrier meets the third time of every
// other thread. So questions about the order that barriers make are questions about counts on paths.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/graph/flow.h"

namespace klap::analysis {

struct CountRange {
  static constexpr uint32_t kUnbounded = ~0u;
  uint32_t least = 0, most = 0;
};

class PathCounts {
 public:
  // `counted` and `targets` have an entry for each instruction; `targets` may have one more for the closing
  // brace. A path ends before a target's instruction runs, and may also go on past it to another target.
  // Without meaning where the control flow has unknown branches.
  PathCounts(const ControlFlow& flow, const std::vector<bool>& counted, const std::vector<bool>& targets);

  // Over all paths from the entry; nothing if no target can be reached.
  [[nodiscard]] const std::optional<CountRange>& from_entry() const { return from_entry_; }
  // Instructions (branches, predicated ways out, predicated counted ones) whose outcome changes the count:
  // two threads that agree at all of them, each time, have equal counts.
  [[nodiscard]] const std::vector<uint32_t>& decisions() const { return decisions_; }

 private:
  std::optional<CountRange> from_entry_;
  std::vector<uint32_t> decisions_;
};

}  // namespace klap::analysis
