// Blocks that are too large for the child or for CUDA; their size comes from memory.
#include "case.h"

constexpr int kLaunches = 6;
constexpr unsigned kBound = 64;

#ifdef __CUDACC__

__global__ void __launch_bounds__(kBound) count_bounded(unsigned* blocks) {
  if (threadIdx.x == 0) atomicAdd(blocks, 1U);
}

extern "C" __global__ void refused_blocks_parent(const unsigned* sizes, unsigned* blocks, int* failed) {
  const int t = threadIdx.x;
  if (t >= kLaunches) return;
  count_bounded<<<2, sizes[t]>>>(blocks + t);
  failed[t] = cudaGetLastError() != cudaSuccess;
}

#else

KLAP_CASE(refused_blocks, "a block that is too large runs, or a good one does not") {
  const std::vector<unsigned> sizes = {64, 32, 1, 0, 65, 1025};
  std::vector<unsigned> blocks;
  std::vector<int> failed;
  for (const unsigned size : sizes) {
    const bool refused = size == 0 || size > kBound;
    failed.push_back(refused ? 1 : 0);
    blocks.push_back(refused ? 0 : 2);
  }
  const auto s = c.input("sizes", sizes);
  const auto b = c.buffer("blocks", std::vector<unsigned>(kLaunches), blocks);
  const auto f = c.buffer("failed", std::vector<int>(kLaunches, -1), failed);
  c.launch("refused_blocks_parent", {1, 1, 1}, {32, 1, 1}, c.address(s), c.address(b), c.address(f));
  c.rewritten("refused_blocks_parent");
}

#endif
