// Launches whose order in their stream matters only if pointers of the host meet: as the host gives them, and
// as kernels pass them on.
//
// Each thread launches two children. The second one reads what the first one writes, if the pointers are the
// same.
#include "case.h"

KLAP_SHARED static inline int next_cell(int cell, int by) {
  return static_cast<int>((cell * 1103515245u + 12345u + static_cast<unsigned>(by)) >> 1);
}

#ifdef __CUDACC__

__global__ void step_cell(int* cells, int number) { cells[number] = next_cell(cells[number], number); }
__global__ void add_cell(int* sums, const int* cells, int number) {
  sums[number] = next_cell(sums[number], cells[number]);
}

__device__ __forceinline__ void launch_both(const int* from, int* to, int* sums) {
  step_cell<<<1, 1>>>(to, static_cast<int>(threadIdx.x));
  add_cell<<<1, 1>>>(sums, from, static_cast<int>(threadIdx.x));
}

extern "C" __global__ void exchanged(int* from, int* to, int* sums, int rounds) {
  launch_both(from, to, sums);
  if (threadIdx.x == 0 && rounds > 1)
    exchanged<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(to, from, sums, rounds - 1);
}
// The second round has one array alone.
extern "C" __global__ void made_equal(int* from, int* to, int* sums, int rounds) {
  launch_both(from, to, sums);
  if (threadIdx.x == 0 && rounds > 1)
    made_equal<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(to, to, sums, rounds - 1);
}
// Three arrays go round: each of them is any parameter once.
extern "C" __global__ void rotated(int* a, int* b, int* c, int rounds) {
  launch_both(a, b, c);
  if (threadIdx.x == 0 && rounds > 1)
    rotated<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(b, c, a, rounds - 1);
}
// Pointers move on within their arrays.
extern "C" __global__ void moved_on(int* from, int* to, int* sums, int rounds) {
  launch_both(from, to, sums);
  if (threadIdx.x == 0 && rounds > 1) {
    const int by = static_cast<int>(blockDim.x);
    moved_on<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(to + by, from + by, sums + by, rounds - 1);
  }
}
// Pointers that memory holds.
extern "C" __global__ void loaded(int** arrays, int* sums, int rounds) {
  launch_both(arrays[0], arrays[1], sums);
  if (threadIdx.x == 0 && rounds > 1)
    loaded<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(arrays, sums, rounds - 1);
}
extern "C" __global__ void store_and_load(int** arrays, int* cells, int* sums, int rounds) {
  arrays[0] = cells;
  arrays[1] = cells;
  loaded<<<1, 32, 0, cudaStreamTailLaunch>>>(arrays, sums, rounds);
}
// One kernel hands them to another one, in other places.
extern "C" __global__ void handed_on(int* sums, int* to, int* from, int rounds) {
  launch_both(from, to, sums);
  if (threadIdx.x == 0 && rounds > 1)
    exchanged<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(from, to, sums, rounds - 1);
}

#else

namespace {

using klap::differential::Builder;
using Cells = std::vector<int>;

constexpr int kThreads = 32, kRounds = 4;

Cells cells_from(int first, size_t count = kThreads) {
  Cells cells;
  for (size_t i = 0; i < count; ++i) cells.push_back(first + static_cast<int>(i) * 37 % 101);
  return cells;
}

void both(const int* from, int* to, int* sums) {
  for (int t = 0; t < kThreads; ++t) {
    to[t] = next_cell(to[t], t);
    sums[t] = next_cell(sums[t], from[t]);
  }
}

void exchanged(int* from, int* to, int* sums, int rounds) {
  for (; rounds > 0; --rounds, std::swap(from, to)) both(from, to, sums);
}

void executed(Builder& c, const char* parent) {
  c.left_on_device(parent, "stream-unsupported");
  c.by_warp("some");
}

}  // namespace

KLAP_CASE(pointers_exchanged,
          "launches that are apart by the host's pointers meet when these are exchanged") {
  Cells a = cells_from(1), b = cells_from(2), sums = cells_from(3);
  exchanged(a.data(), b.data(), sums.data(), kRounds);
  const auto of_a = c.buffer("a", cells_from(1), a), of_b = c.buffer("b", cells_from(2), b);
  const auto of_sums = c.buffer("sums", cells_from(3), sums);
  c.launch("exchanged", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_b), c.address(of_sums),
           kRounds);
  executed(c, "exchanged");
}

KLAP_CASE(pointers_equal, "launches lose their order though the host passes one array twice") {
  Cells a = cells_from(1), sums = cells_from(3);
  exchanged(a.data(), a.data(), sums.data(), kRounds);
  const auto of_a = c.buffer("a", cells_from(1), a), of_sums = c.buffer("sums", cells_from(3), sums);
  c.launch("exchanged", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_a), c.address(of_sums),
           kRounds);
  executed(c, "exchanged");
}

KLAP_CASE(pointers_both_ways,
          "the order of one launch of the host is that of another one with other arrays") {
  Cells a = cells_from(1), b = cells_from(2), sums = cells_from(3);
  for (int i = 0; i < 2; ++i) {
    exchanged(a.data(), b.data(), sums.data(), kRounds);
    exchanged(b.data(), b.data(), sums.data(), kRounds);
  }
  const auto of_a = c.buffer("a", cells_from(1), a), of_b = c.buffer("b", cells_from(2), b);
  const auto of_sums = c.buffer("sums", cells_from(3), sums);
  for (int i = 0; i < 2; ++i) {
    c.launch("exchanged", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_b), c.address(of_sums),
             kRounds);
    c.launch("exchanged", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_b), c.address(of_b), c.address(of_sums),
             kRounds);
  }
  executed(c, "exchanged");
}

KLAP_CASE(pointers_made_equal, "launches lose their order though a kernel passes one array twice") {
  Cells a = cells_from(1), b = cells_from(2), sums = cells_from(3);
  both(a.data(), b.data(), sums.data());
  exchanged(b.data(), b.data(), sums.data(), kRounds - 1);
  const auto of_a = c.buffer("a", cells_from(1), a), of_b = c.buffer("b", cells_from(2), b);
  const auto of_sums = c.buffer("sums", cells_from(3), sums);
  c.launch("made_equal", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_b), c.address(of_sums),
           kRounds);
  executed(c, "made_equal");
}

KLAP_CASE(pointers_rotated, "launches of three arrays, which are any parameter once, meet") {
  Cells a = cells_from(1), b = cells_from(2), d = cells_from(3);
  int *x = a.data(), *y = b.data(), *z = d.data();
  for (int i = 0; i < kRounds; ++i) {
    both(x, y, z);
    std::swap(x, y);
    std::swap(y, z);
  }
  const auto of_a = c.buffer("a", cells_from(1), a), of_b = c.buffer("b", cells_from(2), b);
  const auto of_d = c.buffer("d", cells_from(3), d);
  c.launch("rotated", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_b), c.address(of_d),
           kRounds);
  executed(c, "rotated");
}

KLAP_CASE(pointers_moved_on, "launches lose their order though pointers move on in one array") {
  constexpr size_t kAll = size_t{kThreads} * kRounds;
  Cells a = cells_from(1, kAll), sums = cells_from(3, kAll);
  for (int i = 0; i < kRounds; ++i)
    both(a.data() + kThreads * i, a.data() + kThreads * i, sums.data() + kThreads * i);
  const auto of_a = c.buffer("a", cells_from(1, kAll), a);
  const auto of_sums = c.buffer("sums", cells_from(3, kAll), sums);
  c.launch("moved_on", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_a), c.address(of_a), c.address(of_sums),
           kRounds);
  executed(c, "moved_on");
}

KLAP_CASE(pointers_loaded, "launches lose their order though memory holds the pointers") {
  Cells a = cells_from(1), sums = cells_from(3);
  exchanged(a.data(), a.data(), sums.data(), kRounds);
  const auto arrays = c.buffer("arrays", std::vector<uint64_t>(2), std::vector<uint64_t>());
  const auto of_a = c.buffer("a", cells_from(1), a), of_sums = c.buffer("sums", cells_from(3), sums);
  c.launch("store_and_load", {1, 1, 1}, {1, 1, 1}, c.address(arrays), c.address(of_a), c.address(of_sums),
           kRounds);
  c.left_on_device("store_and_load", "stream-unsupported");
  c.by_warp("stream-unsupported");
}

KLAP_CASE(pointers_handed_on, "launches lose their order where a kernel gives its pointers to another one") {
  Cells a = cells_from(1), sums = cells_from(3);
  exchanged(a.data(), a.data(), sums.data(), kRounds);
  const auto of_a = c.buffer("a", cells_from(1), a), of_sums = c.buffer("sums", cells_from(3), sums);
  c.launch("handed_on", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_sums), c.address(of_a), c.address(of_a),
           kRounds);
  executed(c, "handed_on");
}

#endif
