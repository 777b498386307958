// Launches that at most one thread of each block makes.
//
// They are in no order with those of other threads, so nothing is lost where the NULL stream's order between
// threads is not kept. Shown by the comparisons that lead to the launch: they must leave one value to the
// thread's index in every dimension that a block can have. Programs whose blocks have one dimension compare
// only that one; there the others must follow from a store that two threads could only make in a data race
// (same_view.h). Without any comparison such a store shows nothing: threads that all set the same flag are a
// race, too, and common.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"

namespace klap::analysis {

// `block`: of the parent.
bool is_launched_by_one_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block);

// The same of the whole grid, which has no more threads than 32 bits can count.
bool is_launched_by_one_thread_of_all(const FunctionFacts& parent, const Site& site,
                                      const KnownExtents& block, const KnownExtents& grid);

// Whether that thread is the one whose index is 0 in every dimension.
bool is_launched_by_first_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block);

// The comparisons leave one value to threadIdx.x: one thread where blocks have one dimension.
bool may_be_meant_for_one_thread(const FunctionFacts& parent, const Site& site);

// True if a kernel reads its threads' indices or lanes. One that does not is hardly meant for more than one
// thread to a block.
bool tells_threads_apart(const FunctionFacts& kernel);

}  // namespace klap::analysis
