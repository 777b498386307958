// The host's side: several streams in flight, launches one after another that use each other's results, two
// parents with one child, a kernel launched from both sides.
#include "case.h"

constexpr int kThreads = 96;

#ifdef __CUDACC__

__global__ void add(int* cell, int value) {
  if (threadIdx.x < 4) atomicAdd(cell, value);
}
extern "C" __global__ void add_parent(int* cells, int value) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add<<<1, 32>>>(cells + t, value + t);
}
extern "C" __global__ void other_parent(int* cells, int value) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 2 == 0) add<<<2, 32>>>(cells + t, value);
}
// Reads what the children of an earlier launch made, at another place.
__global__ void move(const int* from, int* to) {
  if (threadIdx.x == 0) *to = *from + 1;
}
extern "C" __global__ void move_parent(const int* from, int* to) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  move<<<1, 32>>>(from + (kThreads - 1 - t), to + t);
}
extern "C" __global__ void fill_all(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(cells + i, value);
}
extern "C" __global__ void fill_parent(int* cells, int n) {
  if (threadIdx.x == 0) fill_all<<<(n + 31) / 32, 32>>>(cells, n, 10);
}

#else

namespace {

const std::vector<int> kZeros(kThreads);

template <class Expected>
std::vector<int> numbers(const Expected& of) {
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(of(t));
  return out;
}

}  // namespace

KLAP_CASE(several_streams, "launches in flight in different streams share records") {
  for (uint32_t stream = 0; stream < 4; ++stream) {
    const int value = 100 * static_cast<int>(stream);
    const auto cells = c.buffer("cells" + std::to_string(stream), kZeros,
                                numbers([&](int t) { return 3 * 4 * (value + t); }));
    for (int i = 0; i < 3; ++i)
      c.launch_in(stream + 1, "add_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells), value);
  }
  c.rewritten("add_parent");
}

KLAP_CASE(two_parents, "two parents with the same child get each other's records") {
  const auto cells =
      c.buffer("cells", kZeros, numbers([](int t) { return 4 * (7 + t) + (t % 2 == 0 ? 8 * 1000 : 0); }));
  c.launch("add_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells), 7);
  c.launch("other_parent", {1, 1, 1}, {96, 1, 1}, c.address(cells), 1000);
  c.rewritten("add_parent");
  c.rewritten("other_parent");
}

KLAP_CASE(chained, "what comes next in a stream does not wait for the children") {
  const auto first = c.buffer("first", kZeros, numbers([](int t) { return 4 * (5 + t); }));
  const auto second = c.buffer("second", kZeros, numbers([](int t) { return 4 * (5 + 95 - t) + 1; }));
  const auto third =
      c.buffer("third", std::vector<int>(kThreads, 9), numbers([](int t) { return 4 * (5 + t) + 2; }));
  const auto copied = c.buffer("copied", kZeros, numbers([](int t) { return 4 * (5 + t); }));
  c.fill(first, 0, 1);
  c.launch_in(1, "add_parent", {3, 1, 1}, {32, 1, 1}, c.address(first), 5);
  c.copy(copied, first, 1);
  c.launch_in(1, "move_parent", {3, 1, 1}, {32, 1, 1}, c.address(first), c.address(second));
  c.launch_in(1, "move_parent", {3, 1, 1}, {32, 1, 1}, c.address(second), c.address(third));
  c.synchronise_stream(1);
  c.rewritten("add_parent");
  c.rewritten("move_parent");
}

KLAP_CASE(both_sides, "a kernel that host and device launch runs with the wrong one's geometry") {
  const auto cells = c.buffer("cells", kZeros, numbers([](int t) { return 1 + (t < 70 ? 20 : 0) + 300; }));
  c.launch("fill_all", {3, 1, 1}, {32, 1, 1}, c.address(cells), kThreads, 1);
  c.launch("fill_parent", {1, 1, 1}, {32, 1, 1}, c.address(cells), 70);
  c.launch("fill_all", {1, 1, 1}, {96, 1, 1}, c.address(cells), kThreads, 300);
  c.launch("fill_parent", {2, 1, 1}, {1, 1, 1}, c.address(cells), 0);  // an empty grid: refused, nothing runs
  c.launch("fill_parent", {1, 1, 1}, {64, 1, 1}, c.address(cells), 70);
  c.rewritten("fill_parent");
}

KLAP_CASE(refused_by_host, "a launch that the driver refuses is answered otherwise, or disturbs the next") {
  const auto cells = c.buffer("cells", kZeros, numbers([](int t) { return 4 * (1 + t); }));
  c.launch("add_parent", {0, 1, 1}, {32, 1, 1}, c.address(cells), 1).launch_error = 1;
  c.launch("add_parent", {1, 1, 1}, {2048, 1, 1}, c.address(cells), 1).launch_error = 1;
  c.launch("add_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells), 1);
}

#endif
