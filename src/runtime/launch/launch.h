// Launch redirection: one launch of a rewritten parent becomes the parent's variant, which records its
// children, and right behind it in the same stream the consumer, which runs them. A parent that launches its
// consumer itself (jit::Launcher::Device) is complete only when that is, and nothing is enqueued behind it.
//
// The decision is made anew at every launch, because it depends on things that only the launch knows: whether
// the stream is being captured, the attributes, the grid. Whatever is not known to be harmless runs the
// original, and Stats::launch_left counts why.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <span>

namespace klap::runtime {

// A launch as the program asked for it, whatever entry point it came through.
struct Launch {
  CUfunction function = nullptr;  // or a CUkernel, which launches accept in its place
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;  // CU_STREAM_PER_THREAD where a _ptsz entry point was given 0
  void** params = nullptr;
  void** extra = nullptr;
  std::span<const CUlaunchAttribute> attributes;
};

// The stream that `stream` means at an entry point for per-thread default streams.
CUstream per_thread_stream(CUstream stream);

// Launches the variant, with its consumer, and returns the result; nothing when the original is to be
// launched.
std::optional<CUresult> redirect_launch(const Launch& launch);

// When the program has run out of memory: returns to the driver what queues in the current context hold, once
// the work that uses it is done. True if there was any, so that asking again may be worth its while.
bool give_back_queue_memory();

// Before a stream is destroyed: takes back the memory of its launch context.
void stream_about_to_end(CUstream stream);

}  // namespace klap::runtime
