// How the runtime must launch what the pipeline made: parents that record, their queues, and promoted chains.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/data/request.h"

namespace klap::jit {

// A kernel that a consumer runs, and the threads of its blocks there.
struct ChildKernel {
  std::string name;
  uint32_t block_threads = 0;
};

// A kernel of a consumer some of whose blocks follow the one that the parent is launched with.
struct FollowingBlock {
  std::string kernel;
  std::array<uint32_t, 3> block{};  // an extent of 0 is that of the parent's block
  // Conditions on a launch. `fills`: this kernel's block has as many threads as the consumer's, because its
  // threads meet at barriers. `full_warps`: the block consists of full warps.
  bool fills = false, full_warps = false;
};

// How many threads a kernel's blocks have at most: those of `block`, in which the parent's block takes the
// place of smaller extents that `or_parents` names, but never more than `threads`.
struct ThreadBound {
  std::array<uint32_t, 3> block{};
  std::array<bool, 3> or_parents{};
  uint32_t threads = 0;
};

// A kernel whose launches have dynamic shared memory, perhaps of sizes that are not known beforehand. The
// variant runs launches of up to so many bytes, so the program must allow the kernel as many. `is_limit`:
// only the limit of the kernel says how much launches ask for, and the program must have left it at that. The
// variant takes it that CUDA refuses larger ones. Otherwise the limit may be larger.
struct SharedLimit {
  std::string kernel;
  uint32_t bytes = 0;
  bool is_limit = false;
};

// The queue that one launch site of a rewritten parent records into. A queue with a size of its own serves
// all sites of the parent.
struct ChildQueue {
  std::string child;
  // Runs all recorded children. Launcher host: its one 8-byte parameter is the queue. Launcher device: the
  // parent's variant launches it, nobody else may.
  std::string consumer;
  uint32_t record_bytes = 0;  // one record: header, arguments, padding
  uint32_t consumer_block_threads = 0;
  uint32_t child_block_threads = 0;
  uint32_t child_shared_bytes = 0;  // dynamic shared memory of each child, or the most of any
  // How many children there will be is not known, because they launch again or because their launch stands in
  // a loop: the queue is a KlapWorkQueue (templates/worklist/work_queue.h), of a size of its own, whatever
  // the parent's grid.
  bool is_work_queue = false;
  bool double_buffered = false;  // the consumer empties the queue's other head, which is the next parent's
  std::vector<ChildKernel> others{};  // beside `child`, where one consumer runs several
  // One part of so many of the device is enough for the consumer, says the program's annotation; 0: it says
  // nothing. Settings win over it.
  uint32_t concurrency = 0;
  // All kernels that the consumer runs, where blocks follow the parent's; else empty. Then the consumer takes
  // the parent's block as a second parameter of 12 bytes, `consumer_block_threads` are the most that it may
  // have, and what is said above of the kernels' blocks does not hold.
  std::vector<FollowingBlock> following{};
  std::vector<SharedLimit> shared_limits{};
  // Bounds of all kernels that the consumer runs, if its blocks may have fewer threads than
  // `consumer_block_threads` where the parent's have few; else empty.
  std::vector<ThreadBound> bounds{};
  // The unit in which the queue counts each child: "blocks of 64 threads", "threads". Empty if it counts
  // nothing, because it has a size of its own, or if the host does not launch the consumer.
  std::string counted{};
};

// A kernel whose launches of itself became a resident chain (analysis/promotion/promotion.h).
struct PromotedChain {
  std::string mode;                 // "P", "PA", "PO", "PAO", "lookback"
  std::array<uint32_t, 3> block{};  // what the program must launch it with: other launches run the original
  uint32_t shared_bytes = 0;        // dynamic; the same
  uint32_t slot_bytes = 0;          // of the ring of links (templates/promote/promote.h), per link
  bool double_buffered = false;     // each launch makes the other ring ready, which is the next one's

  // Its blocks launch each other: the host launches one. The variant takes one more 8-byte parameter, how
  // many links may have blocks at a time.
  [[nodiscard]] bool launches() const { return mode == "P" || mode == "PO"; }
};

struct ParameterBytes {
  uint32_t offset = 0, bytes = 0;
};

// A number in the parent's parameters, widened to 64 bits.
struct ParameterNumber {
  uint32_t offset = 0, bytes = 0;
  bool is_signed = false;
  auto operator<=>(const ParameterNumber&) const = default;
};
// A product of numbers, modulo 2^64; without any a constant.
struct ParameterProduct {
  uint64_t coefficient = 0;
  std::vector<ParameterNumber> factors{};
  auto operator<=>(const ParameterProduct&) const = default;
};
// Their sum, divided. It is a signed number.
struct Distance {
  std::vector<ParameterProduct> products{};
  uint64_t divisor = 1;
  auto operator<=>(const Distance&) const = default;
};
// Along an axis, the index of a block that launches, times the step, is below the bound. A step of 0 stands
// for the block's size.
struct BlockLimit {
  uint32_t axis = 0, step = 0;
  Distance bound;
};

// Memory that the host knows by a pointer in the parent's parameters, or as a variable of the module.
struct HostMemory {
  uint32_t offset = 0;                // of the pointer
  std::string variable;               // empty for a pointer
  bool only_upwards = false;          // no access through the pointer lies below it
  std::vector<Distance> distances{};  // accesses may begin so far from the pointer, too
};
struct MemoryPair {
  HostMemory first, second;
};

// How the runtime must launch one rewritten parent. Sizes are in bytes.
//
// Granularity warp: the parent's variant is launched in the original's place, with the same parameters, and
// that is all: there are no queues. Nor are there where it is promoted.
struct Variant {
  std::string parent;          // original kernel, as the program knows it
  std::string parent_variant;  // records instead of launching; takes one more 8-byte parameter for each queue
  Launcher launcher = Launcher::Host;
  Granularity granularity = Granularity::Grid;
  uint32_t group_blocks = 0;  // as in analysis::Aggregation: a queue needs counters for so many groups
  uint32_t parent_param_count = 0;
  uint32_t parent_param_bytes = 0;           // end of the last original parameter
  uint32_t queue_param_offset = 0;           // of the first added parameter, in the launch buffer
  std::vector<ChildQueue> queues;            // in the order in which they are to be run
  uint64_t pool_bytes = 0;                   // what the program's annotation allows a queue; likewise
  Buffer buffer = Buffer::Pool;              // of the queues
  std::vector<SharedLimit> shared_limits{};  // of children that have no queue
  // The variant may be launched in blocks and grids of these extents only, 0 for any: in others, several
  // threads might launch what has an order that is not kept. The same holds of a grid of one block, and where
  // two of these pieces of memory lie in one allocation or one of these numbers is negative
  // (analysis/order/launch_order.h).
  std::array<uint32_t, 3> block{}, grid{};
  bool several_blocks = false;
  std::vector<BlockLimit> block_limits{};  // of those several
  std::vector<MemoryPair> apart{};
  std::vector<ParameterBytes> not_negative{};                          // signed integers
  std::vector<uint32_t> parent_param_offsets{}, parent_param_sizes{};  // of all original parameters
  // Where its queue is full, launches that keep an order are refused with CUDA's own error.
  bool may_refuse = false;
  // Then so many records of its queue may be out of reach when it does so.
  uint64_t kept_records = 0;
  // Launches with the same parameters, grid and block make equally many launches from the device
  // (analysis/counts/fixed_launches.h).
  bool fixed_launches = false;
  // Whatever address of memory stands in these words of the parameters, it does not change that number.
  std::vector<uint32_t> words_without_effect{};
  // Nor do these bytes, which the parent does not read, such as the padding of a structure.
  std::vector<ParameterBytes> unread_parameters{};
  // The variant can be launched in slices of the grid: behind the queues it takes which one (GridSlice).
  bool in_slices = false;
  // Every consumer begins with a wait for what is before it in its stream, and may be launched with
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
  bool consumers_await = false;
  // Runs the children of the parent's variant in front of it, which runs them thread by thread, in their
  // blocks, and is right for the same launches. That is faster where they are large.
  bool in_blocks = false;
  // Set: the variant has no consumer, but runs the children of the parent's first variant in its own kernel,
  // and is right for the same launches. Its blocks must have so many threads or more.
  uint32_t fused_threads = 0;
  // Then it is meant for launches with few children only (runtime/forms/few_children.h).
  bool where_few = false;
  // Its blocks, or its grid, may have more rows and layers than the program asked for. If so, it takes
  // the program's behind all other parameters (ProgramExtents).
  bool more_threads = false, more_blocks = false;
  [[nodiscard]] bool takes_extents() const { return more_threads || more_blocks; }
  // The parent may wait for other blocks of its grid: as many of the variant's must be resident at a time as
  // of its own.
  bool parent_waits = false;
  // Blocks of its kernels may stop at waits for their children, and take memory from the device's heap then.
  bool stops = false;
  // Set: the variant is launched as a chain of resident blocks, and takes the chain in place of a queue.
  std::optional<PromotedChain> promoted{};
  [[nodiscard]] bool is_fused() const { return fused_threads != 0; }
  // True if the host chooses it in place of the variant in front of it. Otherwise it is for launches for
  // which that one is not made.
  [[nodiscard]] bool is_another_form() const { return in_blocks || is_fused(); }
  // The program's annotations of a promoted chain, 0 if there is none: its blocks, and `concurrency` as in
  // ChildQueue.
  uint32_t pool = 0, concurrency = 0;
};

// A parent's variant is launched for these blocks of the program's grid: the slice's first block, and the
// whole grid. Launched as a whole: (0, 0, 0) and the launch's own grid.
struct GridSlice {
  uint32_t first[3] = {0, 0, 0};
  uint32_t whole[3] = {1, 1, 1};
};

// The rows and layers of the block and the grid that the program asked for, or of the slice of its grid.
struct ProgramExtents {
  uint32_t block_rows = 1, block_layers = 1, grid_rows = 1, grid_layers = 1;
};

}  // namespace klap::jit
