// Children that run thread by thread: only the threads that pass `if (i < n)` are numbered, and those of
// several children share a warp.
#include "case.h"

constexpr int kThreads = 192;  // of a parent's grid, in blocks of 64
constexpr int kCells = 1100;

// Nothing, one thread, a warp and its neighbours, many warps; and a long way of nothing.
KLAP_SHARED static constexpr int degree_of(int t) {
  constexpr int kSizes[] = {0, 1, 31, 32, 33, 5, 0, 2, 1000, 64, 10, 63, 65, 7, 0, 3};
  if (t >= 40 && t < 150) return t == 73 || t == 106 ? 3 : 0;
  return kSizes[t % 16];
}

// A bound of every kind: below 0, none, within the grid, its last thread, beyond it, the ends of the type.
constexpr int kBounds = 16;
constexpr int kGrid = 3;  // blocks of kBlock threads
constexpr int kBlock = 40;
KLAP_SHARED static constexpr long long bound_of(int t) {
  constexpr long long kValues[kBounds] = {0,
                                          1,
                                          -1,
                                          17,
                                          39,
                                          40,
                                          119,
                                          120,
                                          121,
                                          5000,
                                          0x7fffffffLL,
                                          -0x7fffffffLL - 1,
                                          0x100000002LL,
                                          -0x100000002LL,
                                          0x7fffffffffffffffLL,
                                          -0x7fffffffffffffffLL - 1};
  return kValues[t];
}

// More threads than the prefix counts for one child.
constexpr int kBig = (1 << 17) + 37;

KLAP_SHARED static constexpr int block_of(int t) { return t % 9 == 4 ? 128 : 1 + t * 7 % 50; }

#ifdef __CUDACC__

__global__ void add(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(cells + i, value);
}

extern "C" __global__ void flat_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add<<<degree_of(t) / 64 + 1, 64>>>(cells + t * kCells, degree_of(t), t + 1);
}

// What a thread knows of its own place.
__global__ void place(int* cells, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned all = gridDim.x * blockDim.x;
  for (unsigned k = i; k < n + all / 2; k += all) atomicAdd(cells + k, static_cast<int>(all + i));
}

extern "C" __global__ void flat_place_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  place<<<degree_of(t) / 64 + 1, 32>>>(cells + t * kCells, degree_of(t));
}

// Blocks that differ.
extern "C" __global__ void flat_blocks_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int degree = degree_of(t) % 100;
  add<<<(degree + block_of(t)) / block_of(t), block_of(t)>>>(cells + t * kCells, degree, t + 1);
}

// All comparisons that a compiler may make of a guard.
template <class Index, class Bound, bool kInclusive>
__global__ void below(int* cells, Bound n) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (kInclusive ? i <= n : i < n) atomicAdd(cells + i, 1);
}

template <class Index, class Bound, bool kInclusive>
__device__ void launch_below(int* cells, const Bound* bounds) {
  const int t = threadIdx.x;
  below<Index, Bound, kInclusive><<<kGrid, kBlock>>>(cells + t * kGrid * kBlock, bounds[t]);
}

extern "C" __global__ void below_int(int* cells, const int* bounds) {
  launch_below<int, int, false>(cells, bounds);
}
extern "C" __global__ void upto_int(int* cells, const int* bounds) {
  launch_below<int, int, true>(cells, bounds);
}
extern "C" __global__ void below_unsigned(int* cells, const unsigned* bounds) {
  launch_below<unsigned, unsigned, false>(cells, bounds);
}
extern "C" __global__ void upto_unsigned(int* cells, const unsigned* bounds) {
  launch_below<unsigned, unsigned, true>(cells, bounds);
}
extern "C" __global__ void below_long(int* cells, const long long* bounds) {
  launch_below<long long, long long, false>(cells, bounds);
}
extern "C" __global__ void upto_long(int* cells, const long long* bounds) {
  launch_below<long long, long long, true>(cells, bounds);
}
extern "C" __global__ void below_size(int* cells, const unsigned long long* bounds) {
  launch_below<unsigned long long, unsigned long long, false>(cells, bounds);
}
extern "C" __global__ void upto_size(int* cells, const unsigned long long* bounds) {
  launch_below<unsigned long long, unsigned long long, true>(cells, bounds);
}
extern "C" __global__ void below_long_int(int* cells, const int* bounds) {
  launch_below<long long, int, false>(cells, bounds);
}
extern "C" __global__ void below_long_unsigned(int* cells, const unsigned* bounds) {
  launch_below<long long, unsigned, false>(cells, bounds);
}

// -1 becomes the largest number of all.
__global__ void below_extended_child(int* cells, int n) {
  const unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned long long>(static_cast<long long>(n))) atomicAdd(cells + i, 1);
}
extern "C" __global__ void below_size_int(int* cells, const int* bounds) {
  const int t = threadIdx.x;
  below_extended_child<<<kGrid, kBlock>>>(cells + t * kGrid * kBlock, bounds[t]);
}

// The bound is read behind the question for a buffer.
extern "C" __global__ void flat_late_parent(int* cells, const volatile int* degrees) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add<<<60, 20>>>(cells + t * kCells, degrees[t], t + 1);
}

// Two queues, of which the second overwrites what the first wrote.
__global__ void set(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] = value;
}
extern "C" __global__ void flat_two_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set<<<degree_of(t) / 32 + 1, 32>>>(cells + t * kCells, degree_of(t), 1000 + t);
  add<<<degree_of(t) / 64 + 1, 64>>>(cells + t * kCells, degree_of(t) / 2, t + 1);
}

// Blocks of fewer threads than a warp, with nothing that could be compared.
__global__ void count(int* cells) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(cells + i, static_cast<int>(gridDim.x));
}
extern "C" __global__ void flat_small_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 5 != 2) count<<<1 + t % 3, 7>>>(cells + t * kCells);
}
// Every second one is refused, and leaves a record of no threads.
extern "C" __global__ void flat_refused_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  count<<<t % 64 < 40 ? t % 2 : t % 3, 1>>>(cells + 2 * t);
}
extern "C" __global__ void flat_single_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  count<<<1, 1>>>(cells + t);
}

extern "C" __global__ void flat_big_parent(int* cells) {
  const int t = threadIdx.x;
  const int n = t == 5 || t == 6 ? kBig : 3;
  add<<<(n + 255) / 256, 256>>>(cells + (t == 6 ? kBig : t == 5 ? 0 : 2 * kBig + 3 * t), n, t + 1);
}

#else

namespace {

std::vector<int> added(int launches, int (*degree)(int)) {
  std::vector<int> cells(kThreads * kCells, 5);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < degree(t); ++i) cells[t * kCells + i] += launches * (t + 1);
  }
  return cells;
}

// What a kernel above must do with all bounds, its comparison said in C++.
template <class Index, class Bound>
void bounds(klap::differential::Builder& c, const char* parent, bool inclusive) {
  std::vector<int> cells(kBounds * kGrid * kBlock);
  for (int t = 0; t < kBounds; ++t) {
    const auto n = static_cast<Index>(static_cast<Bound>(bound_of(t)));
    for (Index i = 0; i < static_cast<Index>(kGrid * kBlock); ++i) {
      if (i < n || (inclusive && i == n)) cells[t * kGrid * kBlock + static_cast<int>(i)] = 1;
    }
  }
  std::vector<Bound> given;
  for (int t = 0; t < kBounds; ++t) given.push_back(static_cast<Bound>(bound_of(t)));
  const auto in = c.input(std::string(parent) + " bounds", given);
  const auto out = c.buffer(parent, std::vector<int>(cells.size()), cells);
  c.launch(parent, {1, 1, 1}, {kBounds, 1, 1}, c.address(out), c.address(in));
  c.rewritten(parent);
}

}  // namespace

KLAP_CASE(flat, "a thread that passes the guard is lost, run twice or given another child's arguments") {
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads * kCells, 5), added(3, [](int t) { return degree_of(t); }));
  for (int i = 0; i < 3; ++i) c.launch("flat_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("flat_parent");
}

KLAP_CASE(flat_place, "a thread is told another place, or another number of threads, than it has natively") {
  std::vector<int> after((kThreads + 1) * kCells);  // the last child's threads go beyond its own
  for (int t = 0; t < kThreads; ++t) {
    const unsigned n = degree_of(t), all = (n / 64 + 1) * 32;
    for (unsigned i = 0; i < all && i < n; ++i) {
      for (unsigned k = i; k < n + all / 2; k += all) after[t * kCells + k] += static_cast<int>(all + i);
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("flat_place_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("flat_place_parent");
}

KLAP_CASE(flat_blocks, "a thread of a child whose block is not the others' is given another place") {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads * kCells, 5),
                              added(2, [](int t) { return degree_of(t) % 100; }));
  for (int i = 0; i < 2; ++i) c.launch("flat_blocks_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("flat_blocks_parent");
}

KLAP_CASE(flat_bounds, "a guard that compares integers of one width is taken for another one") {
  bounds<int, int>(c, "below_int", false);
  bounds<int, int>(c, "upto_int", true);
  bounds<unsigned, unsigned>(c, "below_unsigned", false);
  bounds<unsigned, unsigned>(c, "upto_unsigned", true);
}

KLAP_CASE(flat_long_bounds, "a guard that compares 64 bits is taken for another one") {
  bounds<long long, long long>(c, "below_long", false);
  bounds<long long, long long>(c, "upto_long", true);
  bounds<unsigned long long, unsigned long long>(c, "below_size", false);
  bounds<unsigned long long, unsigned long long>(c, "upto_size", true);
}

KLAP_CASE(flat_widened_bounds, "a bound of 32 bits is widened in another way than the child does") {
  bounds<long long, int>(c, "below_long_int", false);
  bounds<long long, unsigned>(c, "below_long_unsigned", false);
  bounds<unsigned long long, int>(c, "below_size_int", false);
}

KLAP_CASE(flat_late_bound, "a bound that is not known where the launch begins is taken from somewhere else") {
  std::vector<int> degrees;
  for (int t = 0; t < kThreads; ++t) degrees.push_back(degree_of(t));
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads * kCells, 5), added(1, [](int t) { return degree_of(t); }));
  const auto known = c.input("degrees", degrees);
  c.launch("flat_late_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(known));
  c.rewritten("flat_late_parent");
}

KLAP_CASE(flat_two_sites, "threads of one launch's children are counted to another's") {
  std::vector<int> after(kThreads * kCells);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < degree_of(t); ++i)
      after[t * kCells + i] = 1000 + t + (i < degree_of(t) / 2 ? t + 1 : 0);
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  for (int i = 0; i < 2; ++i) c.launch("flat_two_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("flat_two_parent");
  c.children_never_meet();
}

KLAP_CASE(flat_small_blocks, "children of fewer threads than a warp are mixed up") {
  std::vector<int> after(kThreads * kCells), single(kThreads, 1);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; t % 5 != 2 && i < 7 * (1 + t % 3); ++i) after[t * kCells + i] = 1 + t % 3;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  const auto singles = c.buffer("singles", std::vector<int>(kThreads), single);
  c.launch("flat_small_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.launch("flat_single_parent", {3, 1, 1}, {64, 1, 1}, c.address(singles));
  c.rewritten("flat_small_parent");
  c.rewritten("flat_single_parent");
}

// So that a warp of the consumer takes many steps.
KLAP_CASE(flat_few_warps, "a step of a warp begins where the one before did not end") {
  std::vector<int> after(kThreads * 2);
  for (int t = 0; t < kThreads; ++t) {
    const int grid = t % 64 < 40 ? t % 2 : t % 3;
    for (int i = 0; i < grid; ++i) after[2 * t + i] = grid;
  }
  const auto refused = c.buffer("refused", std::vector<int>(after.size()), after);
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads * kCells, 5), added(1, [](int t) { return degree_of(t); }));
  c.launch("flat_refused_parent", {3, 1, 1}, {64, 1, 1}, c.address(refused));
  c.launch("flat_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("flat_refused_parent");
  c.setting("KLAP_CONCURRENCY", "1000");
}

KLAP_CASE(flat_big, "of a child of too many threads to be counted, some are lost or run twice") {
  std::vector<int> after(2 * kBig + 3 * 32);
  for (int t = 0; t < 32; ++t) {
    const int from = t == 6 ? kBig : t == 5 ? 0 : 2 * kBig + 3 * t;
    for (int i = 0; i < (t == 5 || t == 6 ? kBig : 3); ++i) after[from + i] = t + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("flat_big_parent", {1, 1, 1}, {32, 1, 1}, c.address(cells));
  c.rewritten("flat_big_parent");
}

#endif
