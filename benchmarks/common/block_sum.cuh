// The sum over a block, as the papers' child kernels reduce their rows: shuffles within each warp, shared
// memory between the warps.
#pragma once

#include <cuda_runtime.h>

namespace bench {

template <class Value>
__device__ Value warp_sum(Value value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, distance);
  }
  return value;
}

// For blocks of whole warps; thread 0 gets the sum of all threads' values. To be called once in a kernel.
template <class Value>
__device__ Value block_sum(Value value) {
  __shared__ Value of_warp[32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) value = warp_sum(lane < blockDim.x / 32 ? of_warp[lane] : Value{0});
  return value;
}

}  // namespace bench
