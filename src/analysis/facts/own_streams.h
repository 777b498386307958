// Streams that a kernel's threads create for themselves, launch into and destroy.
//
// Such a stream orders only the launches of its own thread into it. CUDA creates streams on the device as
// non-blocking ones only, which have no order with the NULL stream either. A deferred launch does not need
// the stream at all. So a rewrite can drop the calls that create and destroy streams if all streams of the
// kernel are private. A stream is private if its handle stays in local memory and goes nowhere but into
// launches, calls that destroy it, and null tests (stream_ownership.h).
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// Finds the calls, and if all of them can be done without, marks in `sites` the streams that they create.
// `kernel` has these sites and need not have anything else yet.
OwnStreams find_own_streams(const FunctionFacts& kernel, std::vector<Site>& sites);

// True if the statement is one of the calls that can be done without.
bool is_own_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement);

// False if no launch of a thread at `second` is ordered behind an earlier one of the same thread at `first`:
// control cannot come from there, or they go into streams that have nothing to do with each other.
bool may_be_ordered_within_thread(const FunctionFacts& kernel, const Site& first, const Site& second);

// False if no launch of a thread at `site` is ordered with another launch of this thread, at any site of the
// kernel. That holds in the fire-and-forget stream. It also holds in private streams that the thread creates
// anew for every launch or keeps for one site each.
bool has_order_within_thread(const FunctionFacts& kernel, const Site& site);

// The stream that replaces a created stream's handle in launches that the program makes after all. It keeps
// the order that the kernel's own streams promise: fire-and-forget if they promise none, else the per-thread
// stream.
uint64_t own_stream_stand_in(const FunctionFacts& kernel);

}  // namespace klap::analysis
