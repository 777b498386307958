// Children that are small in some launches and large in others: the sizes of the last ones decide whether
// they run thread by thread or in their blocks. Each thread adds a number of its own. So a child that is
// run with another one's record, twice or not at all changes the sums.
#include "case.h"

constexpr int kThreads = 96;  // of a parent's grid, in blocks of 32
constexpr int kCells = 200;
constexpr int kSmall = 5, kLarge = 185;     // threads of a child, and up to kMore more
constexpr int kMore = 7, kInEachPart = 12;  // launches
constexpr int kBlock = 64, kOtherBlock = 32;

KLAP_SHARED static constexpr int threads_of(int t, int least) { return t % 9 == 4 ? 0 : least + t % kMore; }

#ifdef __CUDACC__

__global__ void add_to_cells(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(cells + i, value + i);
}

__global__ void add_blocks(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(cells + i, 2 * value + i);
}

extern "C" __global__ void sizes_parent(int* cells, int least) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = threads_of(t, least);
  add_to_cells<<<n / kBlock + 1, kBlock>>>(cells + t * kCells, n, t + 1);
}

// Two queues with blocks of two sizes.
extern "C" __global__ void two_sizes_parent(int* cells, int least) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = threads_of(t, least);
  if (t % 2 == 0) add_to_cells<<<n / kBlock + 1, kBlock>>>(cells + t * kCells, n, t + 1);
  if (t % 3 == 0) add_blocks<<<n / kOtherBlock + 1, kOtherBlock>>>(cells + t * kCells, n, t + 1);
}

#else

static std::vector<int> sums(const std::vector<int>& launches, bool two) {
  std::vector<int> cells(kThreads * kCells, 0);
  for (const int least : launches) {
    for (int t = 0; t < kThreads; ++t) {
      const int n = threads_of(t, least);
      for (int i = 0; i < n; ++i) {
        if (!two || t % 2 == 0) cells[t * kCells + i] += t + 1 + i;
        if (two && t % 3 == 0) cells[t * kCells + i] += 2 * (t + 1) + i;
      }
    }
  }
  return cells;
}

// Small children, then large ones, then small ones again. If the host waits for each launch, its look is done
// before the next one.
static void add_changing(klap::differential::Builder& c, const char* parent, bool two, bool waits) {
  std::vector<int> launches(kInEachPart, kSmall);
  launches.insert(launches.end(), kInEachPart, kLarge);
  launches.insert(launches.end(), kInEachPart, kSmall);
  const auto cells = c.buffer<int>("cells", std::vector<int>(kThreads * kCells, 0), sums(launches, two));
  for (const int least : launches) {
    c.launch(parent, {kThreads / 32, 1, 1}, {32, 1, 1}, c.address(cells), least);
    if (waits) c.synchronise();
  }
  c.rewritten(parent);
}

KLAP_CASE(changing_sizes, "a launch of one form is made with queues or consumers of the other") {
  add_changing(c, "sizes_parent", false, true);
}
KLAP_CASE(changing_sizes_without_waits, "a look is read before it is done") {
  add_changing(c, "sizes_parent", false, false);
}
KLAP_CASE(changing_sizes_of_two_children, "the looks at one queue are taken for those at another") {
  add_changing(c, "two_sizes_parent", true, true);
}

#endif
