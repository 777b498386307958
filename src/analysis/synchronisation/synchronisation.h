// Can threads of a block synchronise so that one launch comes before another?
//
// CUDA runs what a block launches into its NULL stream one after another. Which launch comes first is fixed
// only where the launching threads have synchronised; else any order is a legal one. This analysis answers
// whether the order is free, for launches by different threads of a block.
//
// The argument. Thread t launches at A, thread u launches at B. The order is fixed only if t does something
// behind A that u can notice in front of B. Thread t can arrive at a barrier, take part in a warp operation,
// write or update memory, or end. (Barriers and warp operations do not wait for threads that have ended.)
// Thread u can notice the counterparts: a barrier, a warp operation, an atomic, a fence, or a load that
// compilers must not move (volatile, relaxed, acquire). Plain loads that race with a store have no meaning
// and order nothing. Block barriers are counted (barriers.h). A warp operation that both threads have passed
// once before they launch, and cannot pass again, tells nothing about either launch.
#pragma once

#include <cstdint>

#include "analysis/facts/answer.h"
#include "analysis/facts/facts.h"

namespace klap::analysis {

// Tells whether a launch by one thread at instruction `a` may be ordered before one by another thread of its
// block at instruction `b`. `No` is given only if that is shown. The detail names what may order them.
Finding may_be_synchronised(const FunctionFacts& kernel, uint32_t a, uint32_t b);

// True if the order of any two launches, by different threads of a block, at `a` and at `b` is free.
bool is_order_free(const FunctionFacts& kernel, uint32_t a, uint32_t b);

}  // namespace klap::analysis
