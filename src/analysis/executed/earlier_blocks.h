// Blocks that wait for blocks before them, as a scan in one pass does: each block polls what the blocks with
// lower numbers have written (decoupled look-back).
//
// The claim. Every poll of such a kernel waits for a block whose turn comes before the poller's own. A turn
// is the block's number in the grid, or a ticket that the block has taken from a counter. So blocks never
// wait for each other in a circle. Of the blocks that have begun and not ended, the one with the lowest turn
// waits for nobody, provided that the blocks begin in the order of their turns. Blocks that take tickets do
// so by themselves: a block with a lower ticket has begun.
//
// The method. Addresses are linear in the turn. Take a poll of `width` bytes at c * turn + a, and any write
// of the kernel that may satisfy it, at c * turn' + s, with c > 0 and the same pointer. If the least s is at
// least the most a plus the width, no block with turn' >= turn writes what is polled. In a loop that goes
// further back each time, a register that starts at a value and is only decreased is at most that value.
//
// Only strong writes and atomics may satisfy a poll by a strong load. A weak store that it sees would be a
// data race, whose result PTX leaves open. What a grid before it in its stream has written is complete, and
// CUDA promises nothing to a grid that waits for another one beside it. Two pointers that are different
// parameters of the kernel are taken to lead to different memory. Indices are taken not to wrap around: the
// memory in between would have to be the kernel's as well.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// The order in which the blocks of a grid must begin.
enum class BlockOrder {
  Any,
  Rows,     // by number: x counts fastest, then y
  Columns,  // y counts faster than x
};

struct EarlierBlocks {
  bool shown = false;  // the claim
  BlockOrder order = BlockOrder::Any;
  // One sentence with a place if the claim is not shown; empty if a loop waits by something else than a poll.
  std::string why_not;
};

// For a kernel with loops that may wait for other blocks (waiting.h).
EarlierBlocks waits_for_earlier_blocks(const FunctionFacts& kernel);

// The order in which blocks of a kernel must begin that may be run: Any for most.
BlockOrder block_order(const FunctionFacts& kernel);

}  // namespace klap::analysis
