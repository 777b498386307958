// Children of very different sizes side by side: most of one block, some of hundreds.
#include "case.h"

constexpr unsigned kThreads = 64;
constexpr unsigned kLargest = 400;
KLAP_SHARED static constexpr unsigned blocks_of(unsigned t) {
  return t % 21 == 20 ? kLargest : t % 5 == 0 ? 0 : t % 4 + 1;
}

#ifdef __CUDACC__

__global__ void mark(unsigned* marks, unsigned* threads) {
  atomicAdd(threads, 1U);
  if (threadIdx.x == 0) marks[blockIdx.x] += gridDim.x + blockIdx.x;
}

extern "C" __global__ void uneven_parent(unsigned* marks, unsigned* threads) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (blocks_of(t) == 0) return;
  mark<<<blocks_of(t), 8>>>(marks + t * kLargest, threads + t);
}

#else

KLAP_CASE(uneven, "a share of blocks that crosses from one child to the next is cut wrongly") {
  std::vector<unsigned> marks(kThreads * kLargest), threads(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    threads[t] = 8 * blocks_of(t);
    for (unsigned b = 0; b < blocks_of(t); ++b) marks[t * kLargest + b] = blocks_of(t) + b;
  }
  const auto m = c.buffer("marks", std::vector<unsigned>(marks.size()), marks);
  const auto n = c.buffer("threads", std::vector<unsigned>(kThreads), threads);
  c.launch("uneven_parent", {2, 1, 1}, {32, 1, 1}, c.address(m), c.address(n));
  c.rewritten("uneven_parent");
  c.children_never_meet();
}

#endif
