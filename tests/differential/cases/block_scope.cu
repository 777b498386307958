// Children whose threads update memory together that only their own block looks at, by operations that need
// not be seen any further (scope .cta): the threads of such a block must stay in one block.
#include "case.h"

constexpr int kThreads = 64;  // of a parent's grid, in blocks of 32
constexpr int kBlocks = 6;    // of a child at the most

KLAP_SHARED static constexpr int threads_of(int t) {
  constexpr int kSizes[] = {1, 200, 31, 96, 0, 33, 5, 64};
  return kSizes[t % 8];
}
KLAP_SHARED static constexpr int block_of(int t) { return t % 3 == 0 ? 40 : t % 3 == 1 ? 64 : 128; }

#ifdef __CUDACC__

__global__ void count(int* counts, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd_block(counts + blockIdx.x, i);
}
extern "C" __global__ void count_by_block_parent(int* counts) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  count<<<(threads_of(t) + 39) / 40, 40>>>(counts + t * kBlocks, threads_of(t));
}
// Siblings, which CUDA runs one after another. So it does not matter that none sees what another one does.
__global__ void count_together(int* counts) { atomicAdd_block(counts + threadIdx.x % 8, 1); }
extern "C" __global__ void count_with_siblings_parent(int* counts) {
  count_together<<<1, 32>>>(counts + 8 * blockIdx.x);
}
// Blocks that differ: their warps may be apart otherwise.
extern "C" __global__ void count_in_blocks_parent(int* counts) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int block = block_of(t);
  count<<<(threads_of(t) + block - 1) / block, block>>>(counts + t * kBlocks, threads_of(t));
}

// The last thread of a block to come by adds up what the others stored.
__global__ void gather(int* values, int* arrived, int* sums) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = i + 1;
  __threadfence_block();
  if (atomicAdd_block(arrived + blockIdx.x, 1) != static_cast<int>(blockDim.x) - 1) return;
  __threadfence_block();
  int sum = 0;
  for (unsigned k = 0; k < blockDim.x; ++k) sum += atomicAdd_block(values + blockIdx.x * blockDim.x + k, 0);
  sums[blockIdx.x] = sum;
}
extern "C" __global__ void gather_by_block_parent(int* values, int* arrived, int* sums) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  gather<<<2, 40>>>(values + 80 * t, arrived + 2 * t, sums + 2 * t);
}

#else

namespace {

using klap::differential::Builder;

void counted(Builder& c, const char* parent, int (*block)(int)) {
  std::vector<int> counts(kThreads * kBlocks);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < threads_of(t); ++i) counts[static_cast<size_t>(t * kBlocks + i / block(t))] += i;
  }
  const auto out = c.buffer("counts", std::vector<int>(counts.size()), counts);
  c.launch(parent, {kThreads / 32, 1, 1}, {32, 1, 1}, c.address(out));
}

}  // namespace

KLAP_CASE(block_scope, "threads of one block update the same word in several") {
  counted(c, "count_by_block_parent", [](int) { return 40; });
  c.rewritten("count_by_block_parent");
  c.by_warp("order-kept");
}

KLAP_CASE(block_scope_in_blocks_that_differ, "warps of one block update the same word in several") {
  counted(c, "count_in_blocks_parent", block_of);
  c.rewritten("count_in_blocks_parent");
}

KLAP_CASE(block_scope_of_siblings, "siblings update the same words at a time, seen by their blocks alone") {
  const auto out = c.buffer("counts", std::vector<int>(16), std::vector<int>(16, 4 * 32));
  c.launch("count_with_siblings_parent", {kThreads / 32, 1, 1}, {32, 1, 1}, c.address(out));
  c.rewritten("count_with_siblings_parent");
  c.by_warp("as it is");
}

KLAP_CASE(block_scope_fence, "a thread reads what another one of its block has not published to it") {
  std::vector<int> values, sums;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < 80; ++i) values.push_back(i + 1);
    for (int b = 0; b < 2; ++b) sums.push_back(b == 0 ? 820 : 2420);
  }
  const auto all = c.buffer("values", std::vector<int>(values.size()), values);
  const auto arrived = c.buffer("arrived", std::vector<int>(sums.size()), std::vector<int>(sums.size(), 40));
  const auto out = c.buffer("sums", std::vector<int>(sums.size()), sums);
  c.launch("gather_by_block_parent", {kThreads / 32, 1, 1}, {32, 1, 1}, c.address(all), c.address(arrived),
           c.address(out));
  c.rewritten("gather_by_block_parent");
  c.children_never_meet();
}

#endif
