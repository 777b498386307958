// Launch redirection: one launch of a rewritten parent becomes two. The parent's variant records its
// children, and the consumer runs them, directly behind it in the same stream. A parent that launches its
// consumer itself (jit::Launcher::Device) is complete only when the consumer is, and nothing is enqueued
// behind it.
//
// The decision is made anew at every launch, because it depends on things that only the launch knows: whether
// the stream is being captured, the attributes, the grid. A launch that is not known to be harmless runs the
// original, and Stats::launch_left counts why.
#pragma once

#include <cuda.h>

#include <optional>

#include "runtime/program_launch.h"

namespace klap::runtime {

// The stream that `stream` means at an entry point for per-thread default streams.
CUstream per_thread_stream(CUstream stream);

// Launches the variant, with its consumer, and returns the result; nothing when the original is to be
// launched.
std::optional<CUresult> redirect_launch(const Launch& launch);

// Called before the program takes so many bytes of device memory, or fewer. Queues whose pages come with
// their use leave room for it, or end their use of such pages (LaunchContexts::before_allocation()).
void before_allocation(uint64_t bytes);

// Called when the program has run out of memory. Returns the memory of the queues in the current context to
// the driver, once the work that uses it is done. True if there was any, so that asking again may help.
bool give_back_queue_memory();

// Called before a stream is destroyed: takes back the memory of its launch context.
void stream_about_to_end(CUstream stream);

}  // namespace klap::runtime
