// Launches that at most one thread of each block makes.
//
// Such launches have no order with those of other threads. So nothing is lost if the NULL stream's order
// between threads is not kept. The proof uses the comparisons that lead to the launch. They must leave one
// value to the thread's index in every dimension that a block can have. Programs whose blocks have one
// dimension compare only that one. Then the proof holds in blocks of one row, which the runtime can check.
//
// A plain store to one address before the launch proves nothing. Two threads that store the same value there
// are no error that a program would show.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"

namespace klap::analysis {

// `block` is the size of the parent's blocks.
bool is_launched_by_one_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block);

// Asks this for the whole grid, which has no more threads than 32 bits can count.
bool is_launched_by_one_thread_of_all(const FunctionFacts& parent, const Site& site,
                                      const KnownExtents& block, const KnownExtents& grid);

// True if that thread is the one whose index is 0 in every dimension.
bool is_launched_by_first_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block);

// True if the comparisons leave one value to threadIdx.x: that is one thread if blocks have one dimension.
bool may_be_meant_for_one_thread(const FunctionFacts& parent, const Site& site);

// True if a kernel reads its threads' indices or lanes. A kernel that reads neither is hardly meant for more
// than one thread to a block.
bool tells_threads_apart(const FunctionFacts& kernel);

}  // namespace klap::analysis
