// Parents whose blocks launch apart from each other: few of many blocks launch, groups do not divide the
// grid, blocks lose threads early, children of 2^16 blocks come up in a group, and one queue serves grids and
// blocks of many sizes.
#include "case.h"

KLAP_SHARED static constexpr int value_of(int cell) { return 3 * cell + 1; }
// Blocks that launch, spread unevenly.
KLAP_SHARED static constexpr bool launches(int block) { return block % 7 == 3 || block == 0 || block > 34; }

#ifdef __CUDACC__

__global__ void add_value(int* cell, int value) { atomicAdd(cell, value + static_cast<int>(threadIdx.x)); }
__global__ void add_wide(long long* cell, long long value, long long more, int thread) {
  if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(cell), value + more + thread);
}
// One thread a block: many blocks are what it is about.
__global__ void count_blocks(unsigned* count) { atomicAdd(count, 1U); }

__device__ int linear_block() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
__device__ int linear_thread() {
  const int in_block = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return linear_block() * (blockDim.x * blockDim.y * blockDim.z) + in_block;
}

extern "C" __global__ void few_blocks(int* cells) {
  const int t = linear_thread();
  if (launches(linear_block()) && threadIdx.x % 5 != 1) add_value<<<1 + t % 3, 32>>>(cells + t, value_of(t));
}

// Every thread that gets so far launches; many return first, whole warps and whole blocks among them.
extern "C" __global__ void early_returns(int* cells, int n) {
  const int t = linear_thread();
  if (t >= n) return;
  if (threadIdx.x / 32 == 1) return;
  if (t % 11 == 4) {
    cells[t] = -1;
    return;
  }
  add_value<<<1, 32>>>(cells + t, value_of(t));
}

extern "C" __global__ void all_threads(int* cells, int first) {
  const int t = linear_thread();
  if (t >= first) add_value<<<1, 32>>>(cells + t, value_of(t));
}
extern "C" __global__ void all_threads_wide(long long* cells) {
  const int t = linear_thread();
  add_wide<<<2, 64>>>(cells + t, value_of(t), 5, t);
}

extern "C" __global__ void big_and_small(unsigned* counts, int big) {
  const int t = linear_thread();
  count_blocks<<<t == big ? (1U << 16) + t : t % 4, 1>>>(counts + t);
}

#else

#include <algorithm>

namespace {

constexpr int kLanes = 32 * 31 / 2;  // sum of the lanes' numbers

template <class T = int, class Of>
std::vector<T> numbers(int count, const Of& of) {
  std::vector<T> out;
  for (int t = 0; t < count; ++t) out.push_back(static_cast<T>(of(t)));
  return out;
}

int from_32_threads(int t) { return 32 * value_of(t) + kLanes; }

}  // namespace

KLAP_CASE(groups_few_launch,
          "a group that recorded nothing, or the last and smaller one, is not left in order") {
  constexpr int kBlocks = 37, kWidth = 10;
  const auto cells =
      c.buffer("cells", std::vector<int>(kBlocks * kWidth), numbers(kBlocks * kWidth, [](int t) {
                 return launches(t / kWidth) && t % kWidth % 5 != 1 ? (1 + t % 3) * from_32_threads(t) : 0;
               }));
  c.launch("few_blocks", {kBlocks, 1, 1}, {kWidth, 1, 1}, c.address(cells));
  c.rewritten("few_blocks");
}

KLAP_CASE(groups_early_returns, "threads that return early are not counted, or wait for others") {
  constexpr int kBlocks = 9, kWidth = 96, kThreads = 700;
  const auto cells =
      c.buffer("cells", std::vector<int>(kBlocks * kWidth), numbers(kBlocks * kWidth, [](int t) {
                 if (t >= kThreads || t % kWidth / 32 == 1) return 0;
                 return t % 11 == 4 ? -1 : from_32_threads(t);
               }));
  c.launch("early_returns", {kBlocks, 1, 1}, {kWidth, 1, 1}, c.address(cells), kThreads);
  c.rewritten("early_returns");
}

KLAP_CASE(groups_many_shapes, "counters of an earlier grid or block size are taken for those of the next") {
  struct Shape {
    klap::differential::Dim3 grid, block;
  };
  const std::vector<Shape> shapes = {
      {{3, 1, 1}, {32, 1, 1}}, {{20, 1, 1}, {4, 1, 1}},  {{1, 1, 1}, {100, 1, 1}}, {{2, 3, 2}, {4, 2, 3}},
      {{70, 1, 1}, {1, 1, 1}}, {{140, 1, 1}, {2, 1, 1}}, {{5, 1, 1}, {64, 1, 1}},  {{1, 1, 1}, {1, 1, 1}},
      {{90, 1, 1}, {8, 1, 1}}, {{7, 1, 1}, {32, 2, 1}}};
  constexpr int kCells = 720, kWideUpTo = 100;  // threads
  const auto threads_of = [](const Shape& s) {
    return static_cast<int>(s.grid[0] * s.grid[1] * s.grid[2] * s.block[0] * s.block[1] * s.block[2]);
  };
  // Natively there must be room for all launches.
  const auto first_of = [&](const Shape& s) { return std::max(threads_of(s) / 3, threads_of(s) - 1500); };
  std::vector<int> cells(kCells);
  std::vector<long long> wide_cells(kCells);
  for (const Shape& s : shapes) {
    const int threads = threads_of(s);
    for (int t = first_of(s); t < threads; ++t) cells[t] += from_32_threads(t);
    for (int t = 0; t < threads && threads <= kWideUpTo; ++t) wide_cells[t] += 2LL * (value_of(t) + 5 + t);
  }
  const auto cells_at = c.buffer("cells", std::vector<int>(kCells), cells);
  const auto wide_at = c.buffer("wide", std::vector<long long>(kCells), wide_cells);
  for (const Shape& s : shapes) {
    c.launch("all_threads", s.grid, s.block, c.address(cells_at), first_of(s));
    if (threads_of(s) <= kWideUpTo) c.launch("all_threads_wide", s.grid, s.block, c.address(wide_at));
  }
  c.rewritten("all_threads");
  c.rewritten("all_threads_wide");
}

KLAP_CASE(groups_nothing_recorded,
          "a parent that launches nothing leaves counts behind, or launches something") {
  constexpr int kThreads = 24 * 8;
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads),
               numbers(kThreads, [](int t) { return (t >= 150 ? 2 : 0) * from_32_threads(t); }));
  for (const int first : {kThreads, 150, kThreads, kThreads, 150}) {
    c.launch("all_threads", {24, 1, 1}, {8, 1, 1}, c.address(cells), first);
  }
  c.rewritten("all_threads");
}

KLAP_CASE(groups_big_children, "children of 2^16 blocks take the records of small ones of their group") {
  constexpr int kBig = 5;
  const auto counts =
      c.buffer("counts", std::vector<unsigned>(16),
               numbers<unsigned>(16, [](int t) { return t == kBig ? (1 << 16) + t : t % 4; }));
  c.launch("big_and_small", {4, 1, 1}, {4, 1, 1}, c.address(counts), kBig);
  c.rewritten("big_and_small");
}

KLAP_CASE(groups_two_streams, "groups of parents in two streams share counters") {
  constexpr int kThreads = 13 * 16;
  for (uint32_t stream = 0; stream < 2; ++stream) {
    const int first = stream == 0 ? 0 : 77;
    const auto cells =
        c.buffer("cells" + std::to_string(stream), std::vector<int>(kThreads),
                 numbers(kThreads, [&](int t) { return t >= first ? 3 * from_32_threads(t) : 0; }));
    for (int i = 0; i < 3; ++i)
      c.launch_in(stream + 1, "all_threads", {13, 1, 1}, {16, 1, 1}, c.address(cells), first);
  }
  c.rewritten("all_threads");
}

#endif
