// Can a parent's grid be launched in slices: some of its blocks, then their children, then the next blocks?
//
// That is how a parent runs whose records would need more memory than they may take. Each slice is a launch
// of the recording variant with a grid of its own. The consumer of these blocks' children follows it. A block
// learns its place in the whole grid from parameters (transform/aggregate/slices.h).
//
// The argument. The sliced run must be one that the original could have had.
//  - Blocks. CUDA runs the blocks of a grid in any order, at the same time or one after another. So a slice
//    after another is an order that was always possible. The exception is a block that waits for one that has
//    not started. CUDA promises nothing to blocks that wait for each other, but it works if all of them are
//    resident. So a parent is sliced only if nothing in it waits. Every site is checked for that anyway,
//    since a deferred launch needs it, too (waiting.h, called_waiting.h). A program may also wait without
//    saying so to the compiler, by reading one address again and again: that is checked here. Waiting for
//    blocks with smaller numbers only would be harmless, but is not told apart. Cooperative grids and
//    clusters are rejected at the launch or for their registers and barriers.
//  - Children. A child may begin as soon as it is launched, whatever other blocks of the parent have done by
//    then. So children that run before a later block begins run when they might have run. Only launches into
//    the tail stream wait for the whole grid: a parent with one is not sliced. Children do not wait for other
//    threads either (or their site is rejected), so they need no block of a later slice.
//  - Memory. Between a child and the blocks that did not launch it CUDA orders nothing. A program that is
//    right whenever the child runs is right when it runs between two slices; the boundaries between kernels
//    add order and take none away. Messages between blocks by atomics (tickets without a loop, "I am the last
//    block") work over slices as over blocks that run one after another. Counters stay in memory, and the
//    size of the grid that they compare with is the whole one's.
//  - Streams. Streams of the device belong to a block or to a thread, and all of a block's launches are in
//    one slice. Several queues keep their order within each slice, which is all of it. So whatever `ordering`
//    keeps is kept.
//  - Launches by the parent itself (launcher "device") are complete when their slice is, as the stream starts
//    the next slice only then. Groups of blocks are counted within the slice.
//  - Registers. `%ctaid` and `%nctaid` are replaced in the kernel's own body, so a called function must not
//    read them; `%gridid` and other values that tell one launch from another cannot be replaced. Places in
//    the block, lanes, clocks and processors stay what they are.
//  - The rest. Heap, output and the last error are as after any other order of the blocks. A parent whose
//    consumer runs a worklist needs no slices: its queue has a size of its own.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// The number of bytes that a slice of a grid is told: its first block and the whole grid's extents, x y z
// each.
inline constexpr uint32_t kSliceBytes = 24;

// The reason why the grid of a parent, whose sites can be deferred, must be launched as a whole. It is one
// sentence with its place; nothing if there is no reason.
std::optional<std::string> check_slices(const FunctionFacts& parent);

}  // namespace klap::analysis
