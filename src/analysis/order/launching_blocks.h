// Tells whether only one block of a grid may launch.
//
// A conflict between children is tolerated because the program has it between its blocks as well, in no
// order. A program in which the guards of a launch let one block through has no such conflict, however many
// blocks its grid has. The launches of that block have an order. Nothing here is a proof that there is one
// block only. Several blocks are assumed in three cases. No branch before the launch asks for the block's
// index. Or the index is below input (`i < n`), for which a grid of several blocks is launched. Or a constant
// bound lets two blocks through. The index may be divided or clamped there, and it may be counted on in a
// loop. Parameters may still leave one block in the launch at hand, so the host compares them with the
// block's size: they must be a sum of products (`i + first < rows * columns`). Loaded data need not be of any
// form. Every other guard may leave one block. One that only asks for an index above input
// may be for the last block of the grid. A bit of a mask, a distance or `b - first < count` without signs may
// name one block, too. That also holds for a guard on one of several ways to the launch (`b == 2 || b == 9`),
// and for the index in shared memory.
//
// A grid may also elect a block by a number that all blocks draw: the last one that has come to an end, say.
// So a guard may leave one block, too, if it depends on the result of an atomic operation at one address for
// the whole grid. It may depend on it by way of other values, of a called function, and of shared memory.
// That also holds for a comparison of the block's index which decides a value that a guard asks for. An order
// relation with a bound that is not constant is taken to let several blocks through. The extents of the
// child are guards as well, since CUDA refuses a grid without blocks or threads. So is an argument, which may
// leave a child nothing to do.
//
// Data may choose a block, too. A guard may leave one if it asks for data that all threads of a block find by
// its index (`if (chosen[b])`), also by way of shared memory, and for nothing of the thread. A thread's own
// data (`if (t < counts[b])`, `if (chosen[t])`) is not seen as a choice of blocks.
#pragma once

#include <optional>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/order/block_limit.h"

namespace klap::analysis {

// The limits under which several blocks launch at `site`, a site of the parent; nothing if one block may be
// all that does so.
std::optional<std::set<BlockLimit>> limits_of_launching_blocks(const FunctionFacts& parent, const Site& site);

}  // namespace klap::analysis
