// This file tells whether a child's block adds up the sums of its threads.
//
// Behind its loop (range_loop.h) each thread has a sum. The block usually adds these up, by shuffles and in
// shared memory, and one thread adds the result to memory. Programs do this in many ways, and a way may be
// right for blocks of one size only. So no form is recognised here. Instead the code is run, thread by thread
// and barrier by barrier, for a block of a given size. The sum of a thread is a symbol then, and a value that
// is computed from such symbols is the list of those that are in it. Everything else that a thread decides by
// must be known from its number, the size of the block and constants.
//
// The run shows which sums each addition to memory has in it. If each has the sum of every thread once (any
// number of times, if that makes no difference), then the block adds up its range, whatever the elements are.
// This must be shown for each size of block that the child is to run with.
//
// A second question is what the block does with its sums if parts of the range are added up elsewhere, and
// one warp goes on with the total (range_split.h). Then the sums may take part in any computation, once all
// of them are in, and one thread may read and write memory (block_effects.h).
//
// Nothing is allowed that has not been thought of: every instruction is known, or there is no answer. Threads
// that are not kept apart by a barrier must not touch the same shared memory, unless both read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/ranges/block_effects.h"
#include "analysis/ranges/range_loop.h"
#include "analysis/values/values.h"

namespace klap::analysis {

// An addition of the block's sums to memory.
struct BlockAddition {
  Expr address;              // the same for all threads
  std::string operation;     // as in accumulators.h
  std::vector<size_t> sums;  // which of RangeLoop::sums are added up
  friend bool operator==(const BlockAddition&, const BlockAddition&) = default;
};

struct BlockSum {
  std::string why_not;  // empty if the block adds up what its threads have, and does nothing else
  std::vector<BlockAddition> additions;
  // True if a sum of floating-point numbers is added by one thread. Then its last bits are the same in each
  // run of the program, where no other child adds to the same memory. If several threads add, nobody says in
  // which order.
  bool has_fixed_bits = false;
};

// The kernel runs as one block of so many threads in a row, a multiple of a warp.
BlockSum run_block(const Values& child, const RangeLoop& loop, uint32_t threads);

// How the block ends if parts of its range are joined.
struct EndRun {
  uint32_t threads = 0;
  bool knows_range = false;  // the ends of the range may be used
  AssumedConditions assumed = {};
};
// Runs the block, and tells what one of the threads does with the complete sums. Runs that share `values` can
// be compared: blocks do the same if thread and effects are equal.
EndOfBlock run_block_to_end(const Values& child, const RangeLoop& loop, const EndRun& run,
                            OpaqueValues& values);

// The loop, and for each size of block from a warp on what it adds: "yes: add.f32 over p[52] to p[56]",
// "32 threads: add.f32 of sum 0 to p[32:8] + 4*s64(p[48])", ...
std::string print_range_sum(const Values& child);

}  // namespace klap::analysis
