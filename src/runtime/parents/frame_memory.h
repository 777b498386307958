// The memory of blocks that stop (ptx-patterns/templates/suspension/frames.cu): how large it may grow, and
// how much of it is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace klap::runtime {

class LaunchContext;
class ParentKernel;

// The size that the device's heap should have for it: half of what all queues may take, and 512 MB at most.
size_t heap_for_frames(size_t free_bytes, uint64_t total_bytes);

// Widens the heap of the current CUDA context, unless the program has chosen a size. What it gets more counts
// as memory of queues. The result says what has become of it, for the log; empty if the size is the
// program's.
std::string widen_heap(uint64_t context_id);

// Has the parent's code count its memory in the launch's context, if statistics are asked for.
void count_frames(const ParentKernel& parent, const LaunchContext& launch);

// Adds what all contexts have counted to the statistics. Called at exit.
void add_frames_to_statistics();

}  // namespace klap::runtime
