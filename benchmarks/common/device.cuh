// What the programs' kernels share.
#pragma once

#include <cuda_runtime.h>

namespace bench {

// Blocks of `block` threads that make at least `threads` threads.
__host__ __device__ constexpr unsigned blocks_for(long long threads, int block) {
  return static_cast<unsigned>((threads + block - 1) / block);
}

// Counts the device launch just made if CUDA refused it. The kernels that are timed are compiled with
// kCount = false and ask nothing, as programs do.
template <bool kCount>
__device__ __forceinline__ void count_if_lost([[maybe_unused]] unsigned long long* lost) {
  if constexpr (kCount) {
    if (cudaGetLastError() != cudaSuccess) atomicAdd(lost, 1ULL);
  }
}

}  // namespace bench
