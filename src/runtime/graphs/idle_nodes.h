// Idle work for the nodes behind a replaced parent, while its variant does not need them.
//
// The variants of a parent need different numbers of nodes, and the nodes of an executable graph stay the
// same. The driver could disable those that are not needed. But on an H200 (driver 580), replays of a graph
// with a disabled node and other parameters each time were seen to lose the order of their nodes, or to
// fail. So they do work that changes nothing.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace klap::runtime {

struct IdleNodes {
  CUfunction kernel = nullptr;  // has no parameters, does nothing
  CUdeviceptr word = 0;         // four bytes that nobody reads
  [[nodiscard]] CUDA_KERNEL_NODE_PARAMS launch() const;
  [[nodiscard]] CUDA_MEMSET_NODE_PARAMS fill() const;
};

// The idle work of the current context, whose id that is. Throws Error if the driver does not load it.
IdleNodes idle_nodes(uint64_t context_id);
// Forgets that of a context that has ended.
void forget_idle_nodes(uint64_t context_id);

}  // namespace klap::runtime
