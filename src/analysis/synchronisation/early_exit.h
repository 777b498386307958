// Can lanes reach a barrier or a `.sync` operation after other threads have left the kernel?
//
// `bar` without a count and `.sync` warp operations wait for threads that have not ended. A program may rely
// on that: `if (i >= n) return;` in front of a barrier is fine as long as `return` ends the thread. It is a
// deadlock once the body stands in a loop and the threads that left wait elsewhere.
//
// The argument. Take one barrier, or all warp operations with a full mask together. Every way from the entry
// to an exit may run it equally often. Or the number may depend only on decisions at which the whole block
// agrees. Then the last arrival of every thread is at the same meeting, and no thread exits before it. For
// warp operations it is enough that each warp agrees. Two more things are known there: which threads of whole
// rows share a warp, and which loads a warp sees alike (warp_invariant_load.h). If the number depends on a
// decision that differs by thread, one thread may exit while another one has still to arrive. Operations
// that name some lanes only, barriers with a count, mbarrier objects and barriers in called functions cannot
// be counted so: there the answer is `Unknown`.
//
// If whole warps may exit on their own, it is enough that each warp agrees at barriers, too. If any thread
// may exit on its own, it must exit immediately by the decision at which it parts from its warp. A longer way
// to the exit could lead it to a place where the hardware waits for the warp to come together again. Barriers
// can be made to let the remaining threads go on, if they are all one plain barrier
// (templates/common/exits.h).
#pragma once

#include "analysis/facts/answer.h"
#include "analysis/facts/facts.h"

namespace klap::analysis {

// The threads that may exit without a deadlock while others have still to meet.
enum class MayExit { Nobody, Warps };

// `full_rows`: the kernel's blocks are so many threads wide that every 32 of a row are a warp. A comparison
// of the thread's index with a multiple of 32 does not divide such a warp.
Finding early_exit(const FunctionFacts& kernel, bool full_rows = false, MayExit may_exit = MayExit::Nobody);

// One line.
std::string print_early_exit(const FunctionFacts& kernel);

}  // namespace klap::analysis
