// Kernels that wait for their children in a loop, and look at what these have written by volatile loads.
//
// Such a look could be one that waits for another block, as in polling.cu, but the kernels say where they
// wait.
#include "sizes.h"

constexpr int kThreads = 64, kChild = 32;

extern "C" __global__ void count_rounds(int* counts, int* results, int rounds);
extern "C" __global__ void until_enough(int* counts, int* results, int enough);

#ifdef __CUDACC__
extern "C" __global__ void add_threads(int* count) { atomicAdd(count, 1); }

// Each thread adds up what it sees in each round.
extern "C" __global__ void count_rounds(int* counts, int* results, int rounds) {
  int seen = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x == 0) {
      add_threads<<<1, kChild>>>(&counts[blockIdx.x]);
      cudaDeviceSynchronize();
    }
    __syncthreads();
    seen += ((volatile int*)counts)[blockIdx.x];
    __syncthreads();
  }
  results[blockIdx.x * kThreads + threadIdx.x] = seen;
}

// One thread drives, and what it reads tells whether it goes on.
extern "C" __global__ void until_enough(int* counts, int* results, int enough) {
  if (threadIdx.x != 0) return;
  int rounds = 0;
  while (((volatile int*)counts)[blockIdx.x] < enough) {
    add_threads<<<1, kChild>>>(&counts[blockIdx.x]);
    cudaDeviceSynchronize();
    ++rounds;
  }
  results[blockIdx.x] = rounds;
}
#endif

#ifndef __CUDACC_RTC__
int main(int argc, char** argv) {
  return waiting::at_sizes("looks", argc, argv, [](gpu::Report& report, int size) {
    const int blocks = 1 + 20 * size, rounds = 5 + 20 * size;
    gpu::Buffer<int> counts(blocks), results(static_cast<size_t>(blocks) * kThreads);
    WAITING_LAUNCH(count_rounds, blocks, kThreads)(counts.data(), results.data(), rounds);
    gpu::wait("count_rounds");
    std::vector<int> seen;
    for (int i = 0; i < blocks * kThreads; ++i)
      seen.push_back(i % kThreads + kChild * rounds * (rounds + 1) / 2);
    report.expect_equal("what was seen", results.to_host(), seen);

    gpu::Buffer<int> drivers(blocks), turns(blocks);
    WAITING_LAUNCH(until_enough, blocks, kThreads)(drivers.data(), turns.data(), rounds * kChild - 1);
    gpu::wait("until_enough");
    report.expect_equal("rounds until there were enough", turns.to_host(), std::vector<int>(blocks, rounds));
  });
}
#endif
