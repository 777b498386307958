// Kernels whose lanes exchange values before they launch and wait: they do not meet a thread that waits.
#include "sizes.h"

constexpr int kWarps = 3, kThreads = 32 * kWarps;

extern "C" __global__ void add_up(const int* values, int* sums, int* results);
extern "C" __global__ void elect(const int* values, int* sums, int* results);

#ifdef __CUDACC__
extern "C" __global__ void multiply(int* sum, int value) { atomicAdd(sum, value * (threadIdx.x + 1)); }

// The sum of a block by shuffles, of which a child makes more.
extern "C" __global__ void add_up(const int* values, int* sums, int* results) {
  __shared__ int parts[kWarps];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int value = values[t];
  for (int other = 16; other > 0; other /= 2) value += __shfl_down_sync(0xffffffff, value, other);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += parts[i];
    multiply<<<1, 4>>>(&sums[blockIdx.x], sum);
    cudaDeviceSynchronize();
    parts[0] = sums[blockIdx.x];
  }
  __syncthreads();
  results[t] = parts[0] + threadIdx.x;
}

// In each warp the first lane with an odd value launches and waits, if there is any. The others go on.
extern "C" __global__ void elect(const int* values, int* sums, int* results) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const unsigned odd = __ballot_sync(0xffffffff, values[t] % 2 != 0);
  __syncwarp();
  __syncthreads();
  results[t] = __popc(odd);
  if (odd == 0 || lane != __ffs(odd) - 1) return;
  multiply<<<1, 2>>>(&sums[t / 32], values[t]);
  cudaDeviceSynchronize();
  results[t] += 1000 * sums[t / 32];
}
#endif

#ifndef __CUDACC_RTC__
int main(int argc, char** argv) {
  return waiting::at_sizes("warps", argc, argv, [](gpu::Report& report, int size) {
    const int blocks = 1 + 20 * size;
    std::vector<int> values;
    for (int t = 0; t < blocks * kThreads; ++t) values.push_back(t % 32 < 20 ? 2 * t : t % 7);
    gpu::Buffer<int> on_device(values), sums(blocks * kWarps), results(values.size());
    WAITING_LAUNCH(add_up, blocks, kThreads)(on_device.data(), sums.data(), results.data());
    gpu::wait("add_up");
    std::vector<int> right;
    for (int t = 0; t < blocks * kThreads; ++t) {
      int sum = 0;
      for (int i = 0; i < kThreads; ++i) sum += values[t / kThreads * kThreads + i];
      right.push_back(10 * sum + t % kThreads);
    }
    report.expect_equal("sums of blocks", results.to_host(), right);

    gpu::Buffer<int> of_warps(blocks * kWarps), elected(values.size());
    WAITING_LAUNCH(elect, blocks, kThreads)(on_device.data(), of_warps.data(), elected.data());
    gpu::wait("elect");
    right.clear();
    for (int t = 0; t < blocks * kThreads; ++t) {
      int odd = 0, first = -1;
      for (int lane = 31; lane >= 0; --lane) {
        if (values[t / 32 * 32 + lane] % 2 == 0) continue;
        ++odd;
        first = lane;
      }
      right.push_back(odd + (t % 32 == first ? 3000 * values[t] : 0));
    }
    report.expect_equal("elected lanes", elected.to_host(), right);
  });
}
#endif
