// Streams that a kernel's threads create for themselves, launch into and destroy.
//
// Such a stream orders nothing but what its own thread launches into it: CUDA creates streams on the device
// only as non-blocking ones, which have no order with the NULL stream either. Where a launch into it is put
// off, the stream is not needed at all. So a rewrite can drop the calls that create and destroy streams if
// all of a kernel's are such: the handles stay in local memory and go nowhere but into launches, calls that
// destroy them, and null tests (stream_ownership.h).
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

// False if no launch of a thread at `site` is ordered with another launch of the same thread, at this site or
// another one of the kernel: in the fire-and-forget stream, and in streams of the thread's own that it
// creates anew for every launch, or keeps for one site each.
bool has_order_within_thread(const FunctionFacts& kernel, const Site& site);

// What a created stream's handle can be replaced by for launches that the program makes after all: a stream
// that keeps the order that the kernel's own streams promise, fire-and-forget where that is none, else the
// per-thread stream.
uint64_t own_stream_stand_in(const FunctionFacts& kernel);

}  // namespace klap::analysis
