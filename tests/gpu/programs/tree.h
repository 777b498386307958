// A small recursion over a tree, and the free memory of the device, for programs about the memory of queues.
#pragma once

#include "program.h"

constexpr int kFan = 3;      // launches of a node, from as many warps
constexpr int kNodes = 121;  // 1 + 3 + 9 + 27 + 81
constexpr int kBlockSize = 96;

// A node of a heap-ordered tree: its value from what its launcher left for it, then its children's kernels.
__global__ void descend(const int* __restrict__ left, int* __restrict__ leave, int* values, int node,
                        int round) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int value = left[node] * 3 % 1009 + node + round;
  if (threadIdx.x == 0) values[node] = value;
  const int next = kFan * node + 1 + warp;
  if (threadIdx.x % 32 != 7 || next >= kNodes) return;
  leave[next] = value;
  descend<<<1, kBlockSize, 0, cudaStreamFireAndForget>>>(leave, leave, values, next, round);
}

class Tree {
 public:
  void launch(int round, cudaStream_t stream) const {
    descend<<<1, kBlockSize, 0, stream>>>(left_.data(), left_.data(), values_.data(), 0, round);
  }
  // Compares the values with those of that round.
  void expect_right(gpu::Report& report, int round) const {
    std::vector<int> expected(kNodes);
    for (int node = 0; node < kNodes; ++node)
      expected[node] = (node == 0 ? 0 : expected[(node - 1) / kFan] * 3 % 1009) + node + round;
    report.expect_equal("values of nodes", values_.to_host(), expected);
  }

 private:
  gpu::Buffer<int> left_{kNodes}, values_{kNodes};
};

inline size_t free_memory() {
  size_t left = 0, total = 0;
  gpu::check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
  return left;
}
