// Per-thread default streams, which end with their thread and without any call that could be hooked.
//
// A server that starts a thread per request would otherwise leave one queue behind for each. While a thread
// ends no CUDA call may be made, as the driver may have torn down its own thread data first. So an event
// marks the work that uses the queue at every launch. The main thread ends with the process and needs no such
// events.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace klap::runtime {

// `stream` is the per-thread stream of a thread that may end before the process does.
bool is_ending_thread_stream(CUstream stream);

// When the calling thread ends, the launch context's memory goes back to its pool.
void release_at_thread_end(uint64_t context_id, uint64_t stream_id);

}  // namespace klap::runtime
