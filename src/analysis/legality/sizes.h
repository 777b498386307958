// Sizes that a launch gives each block of its child and that may differ between launches: the number of
// threads and the bytes of dynamic shared memory.
//
// An exact grid (launcher "device") has blocks as large as the largest child's, each with the shared memory
// of the child that asks for most. A block of a smaller child lets its surplus threads end, as threads that
// end early do natively: barriers and warp operations go on without them. The surplus shared memory is not
// seen, as the register that tells its size cannot be read in a rewritten child.
//
// The consumer that the host enqueues does not know the sizes at that time. It runs children of any block
// warp by warp, which is right if their threads do not meet or share memory. Its shared memory cannot follow.
//
// With loop launches, all of a kernel's blocks must be the same. If children launch again, they may as well
// be as large as the launching kernel's own blocks (recursion.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The most that an extent of a block can be, if CUDA accepts the launch: the constant or, if that is more,
// the same extent of a block that is named where this is used.
struct ExtentBound {
  uint32_t constant = 1;
  bool or_other = false;
  bool operator==(const ExtentBound&) const = default;
};
using BlockBound = std::array<ExtentBound, 3>;

struct LaunchSizes {
  std::array<std::optional<uint32_t>, 3> block{};  // extents that are the same for all launches
  std::optional<uint32_t> shared_bytes;
  // The most that a recorded child may have; larger children are launched as the program does. CUDA refuses
  // blocks of more threads, unless it was told something else than the code says.
  uint32_t most_threads = 0;
  bool full_warps = false;  // every block that CUDA accepts consists of full warps
  BlockBound bound{};       // the other block is the launching one
  uint32_t most_shared_bytes = 0;
  // No launch that CUDA accepts asks for more shared memory: the bound of the value in the code, or the
  // limit.
  uint32_t requested_shared_bytes = 0;

  [[nodiscard]] bool blocks_differ() const;
  [[nodiscard]] bool shared_differs() const { return !shared_bytes; }
};

// The sizes of a launch that can be rewritten.
LaunchSizes launch_sizes(const FunctionFacts& parent, const Site& site, const ptx::Module& child_module,
                         const ptx::Function& child);

// A block whose extents are each a constant or, if missing, the extent of the launching block.
using LaunchBlock = KnownExtents;
// The block of a launch; nothing if an extent is neither.
std::optional<LaunchBlock> launch_block(const FunctionFacts& parent, const Site& site);

// The rejection to a site whose launches may have several sizes, if only one size will do.
std::optional<Rejection> check_differing_sizes(const FunctionFacts& parent, const Site& site);
// The rejection if blocks may also follow the launching one.
std::optional<Rejection> check_unknown_sizes(const FunctionFacts& parent, const Site& site);

// The rejection to sizes that differ on the parent's side, or to blocks that differ on the child's.
std::optional<Rejection> check_launch_sizes(const FunctionFacts& parent, const Site& site,
                                            const Aggregation& aggregation);
std::optional<Rejection> check_child_sizes(const ptx::Module& child_module, const ptx::Function& child,
                                           const CallGraph& graph, const FunctionFacts& parent,
                                           const Site& site, const Aggregation& aggregation);

}  // namespace klap::analysis
