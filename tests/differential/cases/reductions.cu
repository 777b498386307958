// Blocks that reduce something, in a loop of barriers with fewer and fewer threads, before one of their
// threads launches.
#include "case.h"

constexpr int kBlocks = 6;
constexpr int kThreads = 64;
constexpr int kMost = 200;

KLAP_SHARED static constexpr int value(int t) { return t * 11 % 7; }

#ifdef __CUDACC__

__global__ void count_up(int* out, int n, int block) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out + block, i);
}
__global__ void mark(int* out, int block, int by) {
  if (threadIdx.x == 0) out[block] = by;
}

// For the first thread; the others get part of it.
__device__ int block_sum(int* sums, int mine) {
  const int t = threadIdx.x;
  sums[t] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  return sums[0];
}

extern "C" __global__ void parent_of_sums(int* out) {
  __shared__ int sums[kThreads];
  const int n = block_sum(sums, value(blockIdx.x * blockDim.x + threadIdx.x));
  if (threadIdx.x == 0) count_up<<<(n + 31) / 32, 32>>>(out, n, blockIdx.x);
}

// Who launches what depends on the sum; nobody makes two launches.
extern "C" __global__ void parent_that_chooses(int* out, int most) {
  __shared__ int sums[kThreads];
  const int n = block_sum(sums, value(blockIdx.x * blockDim.x + threadIdx.x) * (blockIdx.x % 2 + 1));
  if (threadIdx.x != 0) return;
  if (n < most) {
    count_up<<<(n + 31) / 32, 32>>>(out, n, blockIdx.x);
  } else {
    mark<<<1, 32>>>(out, blockIdx.x, n);
  }
}

#else

int sum_of(int block) {
  int sum = 0;
  for (int t = 0; t < kThreads; ++t) sum += value(block * kThreads + t);
  return sum;
}

KLAP_CASE(reduction, "a reduction's barriers are taken for an order of the launches behind it") {
  std::vector<int> after;
  for (int b = 0; b < kBlocks; ++b) after.push_back(sum_of(b) * (sum_of(b) - 1) / 2);
  const auto out = c.buffer("out", std::vector<int>(kBlocks), after);
  c.launch("parent_of_sums", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out));
  c.rewritten("parent_of_sums");
}

KLAP_CASE(reduction_chooses, "of two launches behind a reduction the wrong one is recorded") {
  std::vector<int> after;
  for (int b = 0; b < kBlocks; ++b) {
    const int n = sum_of(b) * (b % 2 + 1);
    after.push_back(n < kMost ? n * (n - 1) / 2 : n);
  }
  const auto out = c.buffer("out", std::vector<int>(kBlocks), after);
  c.launch("parent_that_chooses", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out), kMost);
  c.rewritten("parent_that_chooses");
}

#endif
