// Can a parent's grid be launched in slices: some of its blocks, then their children, then the next blocks?
//
// That is how a parent runs whose records would need more memory than they may take. Each slice is a launch
// of the recording variant with a grid of its own, followed by what runs the children of these blocks; a
// block learns its place in the whole grid from parameters (transform/aggregate/slices.h).
//
// The argument. What the sliced run does must be something that the original could have done.
//  - Blocks. CUDA runs the blocks of a grid in any order, at the same time or one after another, so a slice
//    after another is an order that was always possible, unless a block waits for one that has not started.
//    CUDA promises nothing to blocks that wait for each other, but where all of them are resident they get
//    away with it. So a parent is sliced only if nothing in it waits. That is looked at for every site
//    (waiting.h, called_waiting.h: a launch that is put off needs the same), and here also what a program may
//    do to wait without saying so to the compiler, read one address again and again. Waiting for blocks with
//    smaller numbers only would be harmless, but is not told apart. Cooperative grids and clusters are left
//    at the launch or for their registers and barriers.
//  - Children. A child may begin as soon as it is launched, whatever other blocks of the parent have done by
//    then: children that run before a later block begins run when they might have. Only launches into the
//    tail stream wait for the whole grid: a parent with one is not sliced. Children do not wait for anybody
//    either (or their site is left), so they need no block of a later slice.
//  - Memory. Between a child and the blocks that did not launch it CUDA orders nothing. A program that is
//    right whenever the child runs is right when it runs between two slices; the boundaries between kernels
//    add order and take none away. What the blocks tell each other by atomics (tickets without a loop, "I am
//    the last block") works over slices as over blocks that run one after another, counters stay in memory,
//    and the size of the grid that they compare with is the whole one's.
//  - Streams. Streams of the device belong to a block or to a thread, and all of a block's launches are in
//    one slice. Several queues keep their order within each slice, which is all of it. So whatever `ordering`
//    keeps is kept.
//  - Launches by the parent itself (launcher "device") are complete when their slice is, as the stream starts
//    the next slice only then. Groups of blocks are counted within the slice.
//  - Registers. `%ctaid` and `%nctaid` are replaced in the kernel's own body, so a called function must not
//    read them; `%gridid` and what else tells one launch from another cannot be replaced. Places in the
//    block, lanes, clocks and processors stay what they are.
//  - The rest. Heap, output and the last error are as after any other order of the blocks. A parent whose
//    consumer feeds itself needs no slices: its queue has a size of its own.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// What a slice of a grid is told, in bytes: its first block and the whole grid's extents, x y z each.
inline constexpr uint32_t kSliceBytes = 24;

// Why the grid of a parent, whose sites can be put off, must be launched as a whole: one sentence with its
// place. Nothing if it need not be.
std::optional<std::string> object_to_slices(const FunctionFacts& parent);

}  // namespace klap::analysis
