// Several launch sites in one kernel: each thread's launches in their order, the block's in the order that
// barriers give them, and sites that are unlike each other in everything.
#include "case.h"

constexpr int kThreads = 96;

#ifdef __CUDACC__

__global__ void put(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
__global__ void scale(int* cell, int factor) {
  if (threadIdx.x == 0) *cell = *cell * factor + 1;
}
__global__ void take(int* cells, int to, int from) {
  if (threadIdx.x == 0) cells[to] = 2 * cells[from];
}
struct Wide {
  long long values[5];
};
__global__ void add_wide(long long* sums, Wide wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(reinterpret_cast<unsigned long long*>(sums + i % 5), wide.values[i % 5]);
}

extern "C" __global__ void three_in_order_parent(int* cells) {
  int* const cell = cells + blockIdx.x * blockDim.x + threadIdx.x;
  put<<<1, 32>>>(cell, static_cast<int>(threadIdx.x) + 1);
  scale<<<1, 64>>>(cell, 3);
  if (threadIdx.x % 2 == 0) scale<<<1, 64>>>(cell, 5);
}
// The launch that stands first in the text comes last: the barrier says so.
extern "C" __global__ void barrier_says_parent(int* cells) {
  const int t = threadIdx.x;
  if (t < 32) {
    __syncthreads();
    take<<<1, 32>>>(cells, t, t + 32);
  } else {
    put<<<1, 32>>>(cells + t, 3 * t);
    __syncthreads();
  }
}
extern "C" __global__ void unlike_parent(int* cells, long long* sums) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 3 == 0) {
    put<<<dim3(1, 1, 1), dim3(8, 4, 1)>>>(cells + t, t);
  } else if (t % 3 == 1) {
    Wide wide;
    for (int i = 0; i < 5; ++i) wide.values[i] = t + i;
    add_wide<<<2, 48>>>(sums, wide, t);
  }
}

#else

#include <algorithm>
#include <utility>

namespace {

template <class Expected>
void on_cells(klap::differential::Builder& c, const char* parent, const Expected& expected_of) {
  std::vector<int> before, after;
  for (int t = 0; t < kThreads; ++t) before.push_back(t % 10);
  for (int t = 0; t < kThreads; ++t) after.push_back(expected_of(t));
  const auto cells = c.buffer("cells", before, after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
}

}  // namespace

KLAP_CASE(three_sites_in_order, "a thread's later launches do not wait for its earlier ones") {
  on_cells(c, "three_in_order_parent", [](int t) {
    const int twice = 3 * (t + 1) + 1;
    return t % 2 == 0 ? 5 * twice + 1 : twice;
  });
  c.rewritten("three_in_order_parent");
}
KLAP_CASE(groups_of_several_sites, "what groups have to leave to others comes before what they launched") {
  const std::pair<unsigned, unsigned> shapes[] = {{30, 12}, {3, 32}, {61, 5}, {1, 1}};  // blocks, threads
  for (const auto& [blocks, threads] : shapes) {
    std::vector<int> after;
    for (int t = 0; t < static_cast<int>(blocks * threads); ++t) {
      const int i = t % static_cast<int>(threads), twice = 3 * (i + 1) + 1;
      after.push_back(i % 2 == 0 ? 5 * twice + 1 : twice);
    }
    const auto cells = c.buffer("cells", std::vector<int>(after.size(), 2), after);
    c.launch("three_in_order_parent", {blocks, 1, 1}, {threads, 1, 1}, c.address(cells));
  }
  c.rewritten("three_in_order_parent");
}
KLAP_CASE(sites_ordered_by_barrier, "sites come in the order of the text although a barrier says otherwise") {
  on_cells(c, "barrier_says_parent", [](int t) { return t < 32 ? 6 * (t + 32) : 3 * t; });
  c.rewritten("barrier_says_parent");
  c.by_warp("order-kept");
}
KLAP_CASE(sites_unlike, "sites of one kernel share what belongs to one of them") {
  constexpr int kAll = 4 * 64;
  std::vector<int> zeros(kAll), cells(kAll);
  std::vector<long long> none(5), sums(5);
  for (int t = 0; t < kAll; ++t) {
    if (t % 3 == 0) cells[t] = t;
    if (t % 3 != 1) continue;
    for (int i = 0; i < std::min(t, 2 * 48); ++i) sums[i % 5] += t + i % 5;
  }
  const auto c0 = c.buffer("cells", zeros, cells);
  const auto s0 = c.buffer("sums", none, sums);
  c.launch("unlike_parent", {4, 1, 1}, {64, 1, 1}, c.address(c0), c.address(s0));
  c.rewritten("unlike_parent");
}

#endif
