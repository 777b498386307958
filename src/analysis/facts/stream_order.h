// This file tells which launches of one thread its streams keep in order. The thread's private streams are
// known by then (private_streams.h).
#pragma once

#include <cstdint>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// True if the statement is one of the calls that can be done without.
bool is_private_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement);

// False if no launch of a thread at `second` is ordered behind an earlier one of the same thread at `first`:
// control cannot come from there, or they go into streams that have nothing to do with each other.
bool may_be_ordered_within_thread(const FunctionFacts& kernel, const Site& first, const Site& second);

// False if no launch of a thread at `site` is ordered with other work of this thread: launches at any site of
// the kernel, copies, fills and events. That holds in the fire-and-forget stream. It also holds in private
// streams that the thread creates anew for every launch or keeps for one site each, where there is nothing
// but launches.
bool has_order_within_thread(const FunctionFacts& kernel, const Site& site);

// The stream that replaces a created stream's handle in launches that the program makes after all. It keeps
// the order that the kernel's own streams promise: fire-and-forget if they promise none, else the per-thread
// stream. Copies and fills are made in that stream, too.
uint64_t private_stream_stand_in(const FunctionFacts& kernel);

}  // namespace klap::analysis
