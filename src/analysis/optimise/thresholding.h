// Children that the launching thread need not record (thresholding).
//
// A record costs its thread a store and a share of an atomic, and the consumer a load of it. A child does
// nothing if none of its threads passes its guard, so it need not be recorded. The launching thread can run a
// child of very few threads itself, one thread of the child after the other, at the place of the launch. The
// threads of larger children are shared out among the lanes of its warp that launch with it.
//
// CUDA promises two things about a child. It begins after its launch and sees what the launching thread had
// seen and written by then. And it comes after that thread's earlier launches into the same stream. A child
// that is run immediately begins after its launch and sees just that. No rule says that it waits for the
// parent to end, or for any other of its threads. So running it earlier than the other, recorded, children is
// one of the orders in which they may natively run. The condition is that no earlier launch of the thread is
// still recorded. Threads of a child that do not meet or share memory may run one after the other, and in
// any lane. A lane that runs another's child has met that lane at a barrier of their warp, behind the launch.
// So it sees what the launching thread had seen and written. No thread of such a child waits for anything,
// since its code has no loop. So the lanes come back from it, whatever other threads do.
//
// The child's code must do the same in the thread of another kernel. It may know its own place, which it is
// told, and nothing else about the thread that runs it. It is code of the parent now. So neither of the two
// may read the other's writes past the caches that show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/optimise/flattening.h"
#include "analysis/values/moldable.h"

namespace klap::analysis {

// A thread runs children of up to so many threads alone. What the lanes of a warp do for each round that they
// share takes as long as some threads of a child.
inline constexpr uint32_t kMostSerialThreads = 8;

struct Thresholding {
  std::optional<FlatBound> bound;  // none: all threads of the child's grid count
  uint32_t most_threads = 0;  // of a child that its launching thread runs; 0: only children of no threads are
                              // dropped
  [[nodiscard]] bool by_warps() const { return most_threads > kMostSerialThreads; }
};

struct ThresholdingVerdict {
  std::optional<Thresholding> thresholding;
  std::string why_not;  // why no child with threads is run so
};

// Judges launches of constant blocks that are recorded one by one, outside loops, with grids and blocks of
// one dimension. `threshold`: the most threads of a child that its launching thread may run. `any_order`:
// launches of a block's threads into its NULL stream may run in any order.
ThresholdingVerdict judge_thresholding(const ptx::Module& child_module, const ptx::Function& child,
                                       const Moldable& moldable, const FunctionFacts& parent,
                                       const Site& site, bool any_order, uint32_t threshold);

}  // namespace klap::analysis
