// Kernels that wait for their children, split where they wait.
//
// A block that must wait stops (analysis/suspension/suspension.h): it leaves what its threads need in a frame
// (frame_code.h), launches a grid of one block into its grid's tail-launch stream, and ends. That grid runs
// when all children are complete. It is the same kernel, and begins where each of the threads stands. So the
// program launches and no longer waits, and all that can be done with launches can be done with it.
//
// CUDA's wait is for the children of the thread's block. A tail launch also awaits those of the grid's other
// blocks. That they can be waited for is certain: no child may wait for a block of its parent's grid, since
// CUDA promises neither that both run at once.
//
// A block that has launched nothing since its last wait goes on without stopping. So does a block for which
// there is no frame: each of its waits returns CUDA's error for a wait without room. Threads at a barrier
// come to it again, until all of the block do. If the program does not look at a wait's result, it would go
// on with what its children have not made yet. So the kernel ends with an error then.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/suspension/suspension.h"
#include "ptx/tree.h"

namespace klap::transform {

struct SplitKernel {
  std::string text;     // the kernel, and the one that goes on where its threads stand
  std::string resumed;  // the name of that one
  uint64_t bytes_per_thread = 0;
};

// For a kernel without a problem. The second one still has code that no thread comes to (unreached_code.h).
SplitKernel split_kernel(const analysis::FlowFacts& kernel, const analysis::Suspension& suspension);

// The declarations that a unit with such kernels has in front of them, in the terms of the older device
// runtime.
std::string split_declarations(const ptx::Module& unit);

}  // namespace klap::transform
