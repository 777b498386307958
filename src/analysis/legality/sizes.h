// What a launch gives each block of its child that may differ from one launch to the next: how many threads
// it has, and how much dynamic shared memory.
//
// An exact grid (launcher "device") has blocks as large as the largest child's, each with the shared memory
// of the one that asks for most. A block of a smaller child lets the threads go that it does not have, which
// is what threads that end early do natively: barriers and warp operations go on without them. More shared
// memory than was asked for is not seen, as the register that tells how much there is cannot be read in a
// rewritten child.
//
// The consumer that the host enqueues does not know the sizes when it is. It runs children of any block warp
// by warp, which is right where threads have nothing to do with each other. Its shared memory cannot follow.
//
// Where launches stand in loops, all of a kernel's blocks must be the same. Where children launch again, they
// may as well be as large as the launching kernel's own (feeding.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

struct LaunchSizes {
  std::array<std::optional<uint32_t>, 3> block{};  // extents that are the same for all launches
  std::optional<uint32_t> shared_bytes;
  // What a child has at most that is recorded; larger ones are launched as the program does. CUDA refuses
  // blocks of more threads, unless it was told something else than the code says.
  uint32_t most_threads = 0;
  uint32_t most_shared_bytes = 0;

  [[nodiscard]] bool blocks_differ() const;
  [[nodiscard]] bool shared_differs() const { return !shared_bytes; }
};

// Of a launch that can be rewritten.
LaunchSizes launch_sizes(const FunctionFacts& parent, const Site& site, const ptx::Module& child_module,
                         const ptx::Function& child);

// A block whose extents are each a constant or, where there is nothing, that of the block which launches it.
using LaunchBlock = KnownExtents;
// Nothing where an extent is neither.
std::optional<LaunchBlock> launch_block(const FunctionFacts& parent, const Site& site);

// The objection where only launches of one size will do.
std::optional<Objection> object_to_differing_sizes(const FunctionFacts& parent, const Site& site);
// The same where blocks may follow the launching one.
std::optional<Objection> object_to_unknown_sizes(const FunctionFacts& parent, const Site& site);

// What stands against sizes that differ on the parent's side, and against blocks that do on the child's.
std::optional<Objection> object_to_launch_sizes(const FunctionFacts& parent, const Site& site,
                                                const Way& way);
std::optional<Objection> object_to_child_sizes(const ptx::Module& child_module, const ptx::Function& child,
                                               const CallGraph& graph, const Site& site, const Way& way);

}  // namespace klap::analysis
