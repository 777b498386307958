// Children that the launching thread need not record (thresholding).
//
// A record costs its thread a store and a share of an atomic, and the consumer a load of it. A child none of
// whose threads passes its guard does nothing, so nothing need be recorded. One of very few threads can be
// run by the thread that launches it, one thread of the child after the other, at the place of the launch.
//
// What CUDA promises about a child is that it begins after its launch and sees what the launching thread had
// seen and written by then, and that it comes after what that thread launched before into the same stream. A
// child that is run at once begins after its launch and sees just that; nothing says that it waits for the
// parent to end, or for any other of its threads. So running it earlier than the other, recorded, children is
// one of the orders in which they may natively run, if nothing that the thread launched before is still
// recorded. Threads of a child that have nothing to do with each other may run one after the other.
//
// What the child's code does must be the same in the thread of another kernel: it may know its own place,
// which it is told, and nothing else about who runs it. It is code of the parent now, so neither of the two
// may read what the other one writes past the caches that show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/optimise/flattening.h"
#include "analysis/values/moldable.h"

namespace klap::analysis {

struct OwnChildren {
  std::optional<FlatBound> bound;  // none: all threads of the child's grid count
  uint32_t most_threads = 0;  // of a child that its launching thread runs; 0: only those of none are left out
};

struct OwnVerdict {
  std::optional<OwnChildren> own;
  std::string why_not;  // why none of more than no threads
};

// For launches of constant blocks that are recorded one by one, outside loops, and grids and blocks of one
// dimension. `threshold`: the most threads of a child that is to be run by the thread that launches it.
// `any_order`: what the threads of a block launch into its NULL stream may run in any order.
OwnVerdict judge_own_children(const ptx::Module& child_module, const ptx::Function& child,
                              const Moldable& moldable, const FunctionFacts& parent, const Site& site,
                              bool any_order, uint32_t threshold);

}  // namespace klap::analysis
