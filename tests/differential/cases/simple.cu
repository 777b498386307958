// Every thread launches one child of its own size; three launches in a row, so that counters must be reset.
#include "case.h"

constexpr int kThreads = 200;
constexpr int kCells = 70;
KLAP_SHARED static constexpr int size_of(int t) { return t * 7 % (kCells + 1); }

#ifdef __CUDACC__

__global__ void add(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] += value;
}

extern "C" __global__ void simple_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kThreads && size_of(t) > 0)
    add<<<(size_of(t) + 31) / 32, 32>>>(cells + t * kCells, size_of(t), t + 1);
}

#else

static void add_simple(klap::differential::Builder& c) {
  std::vector<int> before(kThreads * kCells, 5), after = before;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < size_of(t); ++i) after[t * kCells + i] += 3 * (t + 1);
  }
  const auto cells = c.buffer("cells", before, after);
  for (int i = 0; i < 3; ++i) c.launch("simple_parent", {4, 1, 1}, {64, 1, 1}, c.address(cells));
}

KLAP_CASE(simple, "a child is lost, run twice or given another child's arguments") {
  add_simple(c);
  c.rewritten("simple_parent");
  c.children_never_meet();
}
KLAP_CASE(simple_in_order, "a child begins before one that its block launched before") {
  add_simple(c);
  c.rewritten("simple_parent");
  c.by_warp("order-kept");
}

KLAP_CASE(simple_empty_between,
          "a launch whose threads launch nothing leaves something behind for the next") {
  std::vector<int> before(kThreads * kCells, 5), after = before;
  for (int t = 0; t < 64; ++t) {
    for (int i = 0; i < size_of(t); ++i) after[t * kCells + i] += 2 * (t + 1);
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("simple_parent", {1, 1, 1}, {64, 1, 1}, c.address(cells));
  c.launch("simple_parent", {1, 1, 1}, {1, 1, 1}, c.address(cells));  // thread 0, whose child would be empty
  c.launch("simple_parent", {1, 1, 1}, {64, 1, 1}, c.address(cells));
}

#endif
