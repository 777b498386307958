// One thread's launches into the NULL stream run one after another, with all that they launch; so do those of
// the threads of a block, in the order that barriers give them.
#include "case.h"

constexpr int kThreads = 96;

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
__global__ void set_later(int* cell, int value) {
  if (threadIdx.x == 0) set<<<1, 32>>>(cell, value);
}
__global__ void step(int* cell, int factor) {
  if (threadIdx.x == 0) *cell = *cell * factor + 1;
}
__global__ void step_from(int* cells, int to, int from) {
  if (threadIdx.x == 0) cells[to] = 2 * cells[from];
}

extern "C" __global__ void two_sites_parent(int* cells) {
  set<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) + 1);
  step<<<1, 32>>>(cells + threadIdx.x, 2);
}
extern "C" __global__ void descendants_parent(int* cells) {
  if (threadIdx.x % 8 != 0) return;
  set_later<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) + 1);
  step<<<1, 32>>>(cells + threadIdx.x, 5);
}
extern "C" __global__ void loop_parent(int* cells) {
#pragma unroll 1
  for (int i = 1; i <= 4; ++i) step<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) % 3 + i);
}
extern "C" __global__ void barrier_parent(int* cells) {
  const int t = threadIdx.x;
  if (t >= 32) __syncthreads();
  if (t < 64) step_from<<<1, 32>>>(cells, t, t < 32 ? t + 64 : t - 32);
  if (t < 32) __syncthreads();
}
__device__ int tally;
__global__ void count_plainly(int* cells) {
  if (threadIdx.x == 0) cells[tally++] = 4;
}
extern "C" __global__ void counting_parent(int* cells) {
  if (threadIdx.x < 512) count_plainly<<<1, 32>>>(cells);
}

#else

namespace {

// Rewritten where there is no reason against it.
template <class Expected>
void in_order(klap::differential::Builder& c, const char* parent, const char* reason, const char* by_warp,
              const Expected& expected_of) {
  std::vector<int> before, after;
  for (int t = 0; t < kThreads; ++t) {
    before.push_back(t % 10);
    after.push_back(expected_of(t));
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  if (reason == nullptr) {
    c.rewritten(parent);
  } else {
    c.left(parent, reason);
    c.executed();
  }
  c.by_warp(by_warp);
}

}  // namespace

KLAP_CASE(two_sites, "the second launch of a thread does not wait for its first") {
  c.contract(
      "A grid begins when the grid that its thread launched before it into the same stream is complete.",
      "two launches by each thread of a block");
  in_order(c, "two_sites_parent", nullptr, "rewritten", [](int t) { return 2 * (t + 1) + 1; });
}
KLAP_CASE(descendants, "the second launch of a thread does not wait for what its first launches") {
  c.contract(
      "A grid is complete when its threads and all grids that it launched are, into whatever stream; then "
      "the next one in its stream begins.",
      "a child's child writes, the next grid reads");
  in_order(c, "descendants_parent", "several-sites", "some",
           [](int t) { return t % 8 == 0 ? 5 * (t + 1) + 1 : t % 10; });
  c.otherwise_on_device("child-launches");
}
KLAP_CASE(site_in_loop, "the launches of a loop do not run in order") {
  c.contract("Launches of a loop into one stream run one after another, however many there are.",
             "four by each thread of a block");
  in_order(c, "loop_parent", nullptr, "rewritten", [](int t) {
    int cell = t % 10;
    for (int i = 1; i <= 4; ++i) cell = cell * (t % 3 + i) + 1;
    return cell;
  });
}
KLAP_CASE(barrier_between_launches, "launches of a block that a barrier orders are mixed") {
  c.contract(
      "Launches of different threads into one stream have the order that the program's synchronisation "
      "gives.",
      "a barrier between launches of different warps");
  in_order(c, "barrier_parent", nullptr, "order-kept", [](int t) {
    return t < 32 ? 2 * ((t + 64) % 10) : t < 64 ? 4 * ((t + 32) % 10) : t % 10;
  });
}
KLAP_CASE(plain_counting, "children that count on the NULL stream's order run together") {
  c.contract(
      "Launches of all threads of a block into the NULL stream run one after another, with all that they "
      "launch.",
      "96 threads, children that count plainly");
  in_order(c, "counting_parent", nullptr, "order-kept", [](int) { return 4; });
}

#endif
