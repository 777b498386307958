// A consumer's shape says how it is compiled: its block, the contents of its records, and how it runs
// children.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/executed/earlier_blocks.h"
#include "analysis/legality/cooperation.h"
#include "analysis/legality/shared_overlay.h"
#include "analysis/legality/sizes.h"
#include "analysis/legality/sync_scope.h"
#include "analysis/legality/warp_block.h"
#include "analysis/optimise/flattening.h"
#include "analysis/optimise/straight_loops.h"
#include "analysis/ranges/range_split.h"
#include "ptx/tree.h"
#include "transform/text/record_layout.h"
#include "transform/text/splice.h"

namespace klap::transform {

// Tells whether all launches of the parent are in one queue, and which consumer it has:
// templates/loop_launches/loop.cu, or ordered.cu.
enum class LoopQueue { None, AnyOrder, InOrder };

// Stands for the extent of the block that the host launches the parent with. The consumer is then launched in
// blocks that have room for the blocks of all of its kernels, and is told the parent's extents. In the
// executor it stands for the extent that the record has.
inline constexpr uint32_t kInheritedExtent = 0;

// A kernel that a consumer with a worklist runs, or a kernel of loop launches: its block, the contents of its
// records, and the threads that may exit its blocks early.
struct ConsumerBody {
  std::array<uint32_t, 3> block{};  // with a worklist perhaps with inherited extents; or those of a record
  RecordLayout layout;
  analysis::MayExit may_exit = analysis::MayExit::Nobody;
  const ptx::Function* kernel = nullptr;  // this and the next only for loop launches
  uint32_t shared_bytes = 0;
  // Only for the executor: the most threads of a block whose size is in the record, and whether the kernel
  // launches.
  uint32_t most_threads = 0;
  bool launches = false;
  bool counts_barriers = false;  // its barriers hold the threads of its block (executor/child_barrier.h)
  std::vector<analysis::OverlaidVariable> overlaid = {};  // its shared variables that lie in the common piece
  analysis::BlockOrder order = analysis::BlockOrder::Any;  // in which the blocks of a grid begin
  [[nodiscard]] uint32_t threads() const { return std::max(block[0] * block[1] * block[2], most_threads); }
};

// The shape fixes the -D constants of templates/aggregate/consumer.cu.
struct ConsumerShape {
  std::array<uint32_t, 3> block{};  // of the child
  uint32_t pack = 1;                // child blocks per consumer block
  bool packs = false;               // whether they could be any number
  bool grid_is_1d = false;          // every child grid has y = z = 1
  bool exact = false;               // launched by the parent: templates/aggregate/exact.cu
  bool fused = false;               // a part of the parent's own kernel: templates/aggregate/fused.cu
  uint32_t overlay_bytes = 0,
           overlay_align = 1;        // of the piece in which shared variables lie over each other
  bool double_buffered = false;      // empties the queue's other head, and not its own
  bool awaits_parent = false;        // begins with a wait for the kernel before it (templates/common/await.h)
  bool is_recursive = false;         // children launch again: templates/worklist/worklist.cu
  bool is_executed = false;          // then: templates/executor/executor.cu
  bool copies = false;               // then: the last of the bodies copies and fills memory
  bool has_halves = false;           // then: some are second halves of blocks that stop
  uint32_t takes = 1;                // then: the most items that a block takes at a time
  bool apart = false;                // then: the items' warps need not wait for each other
  std::vector<ConsumerBody> bodies;  // then, and with loop launches: all kernels that it runs, by number
  // Registers of 32 bits for arguments that are read once for all blocks or threads of a child that run one
  // after another.
  uint32_t preloaded_words = 0;
  uint32_t min_blocks_per_sm = 0;   // 0: left to the assembler
  std::vector<UnrolledCopy> loops;  // of the child
  LoopQueue loop_queue = LoopQueue::None;
  analysis::SyncScope sync_scope = analysis::SyncScope::Thread;
  analysis::MayExit may_exit = analysis::MayExit::Nobody;  // early, from a block that stays together
  uint32_t shared_bytes = 0;                               // dynamic shared memory of the child's launch
  // The number of children that fit into one launch, with warp aggregation (templates/warp/warp.cu). The
  // block is then that of each launch.
  uint32_t lanes = 0;
  uint32_t shared_room = 0;  // then: the most dynamic shared memory that a shared launch can have
  RecordLayout layout;
  // Set if blocks or shared memory differ between launches. If blocks differ, `block` is the largest of all,
  // or (not exact) the warp by which they are run.
  std::optional<analysis::LaunchSizes> sizes;
  // Set if blocks of the consumer run several children of one warp that share memory or meet at barriers.
  std::optional<analysis::WarpBlock> warp_block;
  // Set if children run thread by thread: templates/aggregate/consumer_flat.cu.
  std::optional<analysis::Flattening> flat;
  uint32_t flat_threads = 0;  // then: of the consumer's block
  // The split, if the recording thread may give the iterations of a flat child's loop to more threads; else
  // null.
  [[nodiscard]] const analysis::IterationSplit* split() const {
    return flat && flat->split ? &*flat->split : nullptr;
  }
  bool split_all_iterations = false;  // then: a thread for each, however few there are
  // True if such a child runs as one block of as many threads.
  [[nodiscard]] bool in_one_row() const { return split() != nullptr && split()->one_row; }
  // Set if children run as parts of their ranges. `block` is then that of a part.
  std::optional<analysis::RangeSplit> range;
  [[nodiscard]] bool blocks_differ() const { return sizes && sizes->blocks_differ(); }
  [[nodiscard]] bool has_inherited_extents() const;
  [[nodiscard]] uint32_t child_threads() const { return block[0] * block[1] * block[2]; }
  // The most threads, then the most shared memory, of a child that is recorded.
  [[nodiscard]] uint32_t most_child_threads() const { return sizes ? sizes->most_threads : child_threads(); }
  [[nodiscard]] uint32_t most_shared_bytes() const { return sizes ? sizes->most_shared_bytes : shared_bytes; }
  // The threads of the consumer's block; with inherited extents the most that it may have.
  [[nodiscard]] uint32_t threads() const;
  // True if threads of some kernel that it runs may exit so.
  [[nodiscard]] bool may_exit_early(analysis::MayExit who) const;
};
// The shape for a child with that block. The caller sets the fields that its launch decides.
ConsumerShape consumer_shape(const ptx::Module& module, const ptx::Function& child,
                             const std::array<uint32_t, 3>& block, bool grid_is_1d, bool exact,
                             bool is_recursive = false);
// The shape for a launch of any sizes. They stand in the shape only if they differ.
ConsumerShape consumer_shape(const ptx::Module& module, const ptx::Function& child,
                             const analysis::LaunchSizes& sizes, bool grid_is_1d, bool exact);
// Puts several such children into a block. Returns false, and changes nothing, if they share too much memory.
bool pack_warps(ConsumerShape& shape, const analysis::WarpBlock& block);

// Makes the consumer preload arguments.
void preload_arguments(ConsumerShape& shape);

// Makes the consumer unroll its child's loops to so many iterations in a row; the default is a number that
// suits.
void unroll(ConsumerShape& shape, std::vector<analysis::StraightLoop> loops,
            std::optional<uint32_t> iterations);

// Adds all kernels of a consumer that runs a worklist. Its records are as large as the largest of theirs,
// with `header` bytes or more in front of the arguments.
void add_bodies(ConsumerShape& shape, const std::vector<ConsumerBody>& bodies, uint32_t header = 0);

// Makes the consumer one that runs children thread by thread.
void flatten(ConsumerShape& shape, const analysis::Flattening& flattening);

// Makes the consumer one that runs parts of children's ranges.
void split_range(ConsumerShape& shape, const ptx::Module& module, const ptx::Function& child,
                 const analysis::RangeSplit& split);

// Gives the consumer's block so many threads, if child blocks or their threads can share it and fill it. With
// 0 the block stays as it is.
void use_threads(ConsumerShape& shape, uint32_t threads);

}  // namespace klap::transform
