// Launches with few children, then with many, then with few: the last ones decide whether a consumer runs
// them or the parent's own kernel. Each thread adds a number of its own. So a child that is run with another
// one's record, twice or not at all changes the sums.
#include "case.h"

constexpr int kThreads = 1536;  // of a parent's grid, in blocks of 64
constexpr int kFew = 40, kMany = 1200;
constexpr int kInEachPart = 25;  // launches
constexpr int kBlock = 32;
constexpr int kParents = 96, kCellsOfEach = 512, kFullBlock = 64;  // of children that fill their blocks

#ifdef __CUDACC__

__global__ void add_to_cell(int* cells, int t) { atomicAdd(cells + t, threadIdx.x + t % 5); }

__global__ void add_to_other(int* cells, int t) { atomicAdd(cells + kThreads + t, 2 * threadIdx.x + t % 3); }

extern "C" __global__ void counts_parent(int* cells, int children) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < children) add_to_cell<<<1, kBlock>>>(cells, t);
}

extern "C" __global__ void counts_of_two_parent(int* cells, int children) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < children) add_to_cell<<<1, kBlock>>>(cells, t);
  if (t >= kThreads - children / 2) add_to_other<<<1, kBlock>>>(cells, t);
}

__global__ void add_to_row(int* row, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(row + i, value + i);
}

extern "C" __global__ void full_blocks_parent(int* cells, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to_row<<<n / kFullBlock, kFullBlock>>>(cells + t * kCellsOfEach, n, t);
}

#else

static std::vector<int> sums(const std::vector<int>& launches, bool two) {
  constexpr int kSum = kBlock * (kBlock - 1) / 2;
  std::vector<int> cells(2 * kThreads, 0);
  for (const int children : launches) {
    for (int t = 0; t < kThreads; ++t) {
      if (t < children) cells[t] += kSum + kBlock * (t % 5);
      if (two && t >= kThreads - children / 2) cells[kThreads + t] += 2 * kSum + kBlock * (t % 3);
    }
  }
  return cells;
}

// If the host waits for each launch, its look is done before the next one.
static void add_changing(klap::differential::Builder& c, const char* parent, bool two, bool waits) {
  std::vector<int> launches(kInEachPart, kFew);
  launches.insert(launches.end(), kInEachPart, kMany);
  launches.insert(launches.end(), kInEachPart, kFew);
  const auto cells = c.buffer<int>("cells", std::vector<int>(2 * kThreads, 0), sums(launches, two));
  for (const int children : launches) {
    c.launch(parent, {kThreads / 64, 1, 1}, {64, 1, 1}, c.address(cells), children);
    if (waits) c.synchronise();
  }
  c.rewritten(parent);
}

KLAP_CASE(changing_counts, "a launch of one kernel is made with the queues of two, or the other way round") {
  add_changing(c, "counts_parent", false, true);
}
KLAP_CASE(changing_counts_without_waits, "a look is read before it is done") {
  add_changing(c, "counts_parent", false, false);
}
KLAP_CASE(changing_counts_of_two_children, "one queue's children are not counted") {
  add_changing(c, "counts_of_two_parent", true, true);
}
// They are few blocks, and many threads.
KLAP_CASE(changing_counts_in_blocks, "blocks of children are taken for threads") {
  constexpr int kLaunches = 20;
  std::vector<int> sums(kParents * kCellsOfEach);
  for (int t = 0; t < kParents; ++t) {
    for (int i = 0; i < kCellsOfEach; ++i) sums[t * kCellsOfEach + i] = kLaunches * (t + i);
  }
  const auto cells = c.buffer<int>("cells", std::vector<int>(sums.size(), 0), sums);
  for (int i = 0; i < kLaunches; ++i) {
    c.launch("full_blocks_parent", {kParents / 32, 1, 1}, {32, 1, 1}, c.address(cells), kCellsOfEach);
    c.synchronise();
  }
  c.rewritten("full_blocks_parent");
}

#endif
