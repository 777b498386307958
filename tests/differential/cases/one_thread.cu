// Children that update plainly what others read, launched by one thread of each block: one that compares only
// the index that its programmer thinks of, or none at all in a block of one thread. Nothing sets such
// children apart where the program's blocks have more rows or threads, and then they are launched as the
// program does.
#include "case.h"

#ifdef __CUDACC__

__global__ void grow(int* cells, int n, int by) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) cells[i] += by + cells[i] % 2;
}

extern "C" __global__ void first_of_row(int* cells, int n) {
  if (threadIdx.x == 0) grow<<<(n + 63) / 64, 64>>>(cells + blockIdx.x * n, n, 2);
}
// All rows' first threads store the same, so the store does not tell one thread from several.
extern "C" __global__ void first_of_row_marks(int* cells, int n, int* mark) {
  if (threadIdx.x != 0) return;
  *mark = n;
  grow<<<(n + 63) / 64, 64>>>(cells, n, 2);
}
extern "C" __global__ void first_of_all(int* cells, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i == 0) grow<<<(n + 63) / 64, 64>>>(cells, n, 4);
}
extern "C" __global__ void everyone(int* cells, int n) { grow<<<(n + 63) / 64, 64>>>(cells, n, 6); }
extern "C" __global__ void __launch_bounds__(1) bounded(int* cells, int n) {
  grow<<<(n + 63) / 64, 64>>>(cells, n, 8);
}

// A chain of blocks like the first one, each with a child beside its successor.
extern "C" __global__ void chain_of_rows(int* cells, int* sums, int level) {
  if (threadIdx.x != 0) return;
  sums[0] += level;
  if (level > 0) chain_of_rows<<<1, blockDim.x>>>(cells, sums, level - 1);
}

// A tree below each row of the first block. All trees have the same places, so one is complete before the
// next one begins.
extern "C" __global__ void trees_of_rows(int* cells, int first, int level) {
  const int self = first + static_cast<int>(blockIdx.x);
  if (threadIdx.x != 0) return;
  if (threadIdx.y == 0) cells[self] += 2 + cells[self] % 2;
  if (level > 0) trees_of_rows<<<4, 64>>>(cells, 4 * self + 1, level - 1);
}

#else

namespace {

using klap::differential::Builder;
using klap::differential::Dim3;

constexpr int kCells = 150;

// All cells begin even, and stay so.
void add(Builder& c, const char* parent, uint32_t grid, const std::vector<Dim3>& blocks, int each) {
  int after = 0;
  for (const Dim3& block : blocks) after += static_cast<int>(block[1]) * each;
  const auto cells = c.buffer("cells", std::vector<int>(kCells * grid),
                              std::vector<int>(static_cast<size_t>(kCells) * grid, after));
  for (const Dim3& block : blocks) c.launch(parent, {grid, 1, 1}, block, c.address(cells), kCells);
}

}  // namespace

KLAP_CASE(one_thread_of_row, "children of several rows overlap") {
  add(c, "first_of_row", 3, {{64, 1, 1}, {16, 2, 1}, {1, 1, 1}, {8, 3, 1}}, 2);
  c.rewritten("first_of_row");
}

KLAP_CASE(one_thread_of_row_marks, "a store before the launch is taken for one thread's") {
  const auto cells =
      c.buffer("cells", std::vector<int>(kCells), std::vector<int>(kCells, 2 * (1 + 2 + 32 + 3)));
  const auto mark = c.buffer("mark", std::vector<int>(1), std::vector<int>{kCells});
  for (const Dim3& block : std::vector<Dim3>{{64, 1, 1}, {16, 2, 1}, {1, 32, 1}, {8, 1, 3}})
    c.launch("first_of_row_marks", {1, 1, 1}, block, c.address(cells), kCells, c.address(mark));
  c.rewritten("first_of_row_marks");
}

KLAP_CASE(one_thread_of_all, "children of several rows overlap, or one is lost") {
  add(c, "first_of_all", 1, {{64, 1, 1}, {16, 2, 1}}, 4);
  c.rewritten("first_of_all");
}

KLAP_CASE(one_thread_alone, "children of several threads overlap") {
  add(c, "everyone", 1, {{1, 1, 1}, {1, 4, 1}, {1, 1, 1}}, 6);
  c.rewritten("everyone");
}

KLAP_CASE(one_thread_by_bounds, "a block of one thread is taken for a larger one") {
  add(c, "bounded", 1, {{1, 1, 1}, {1, 1, 1}}, 8);
  c.rewritten("bounded");
}

KLAP_CASE(one_thread_recursive, "a link reads what is older than its predecessor wrote") {
  const auto cells = c.buffer("cells", std::vector<int>(1), std::vector<int>(1));
  const auto sums = c.buffer("sums", std::vector<int>(1), std::vector<int>{2 * 55});
  c.launch("chain_of_rows", {1, 1, 1}, {32, 1, 1}, c.address(cells), c.address(sums), 10);
  c.launch("chain_of_rows", {1, 1, 1}, {3, 1, 1}, c.address(cells), c.address(sums), 10);
  c.left_on_device("chain_of_rows", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(one_thread_of_row_recursive, "trees of several rows overlap") {
  constexpr int kNodes = 1 + 4 + 16 + 64;
  std::vector<int> after(kNodes, 2 * (1 + 2 + 3));
  after[0] = 2 * 3;
  const auto cells = c.buffer("cells", std::vector<int>(kNodes), after);
  for (const Dim3& block : {Dim3{64, 1, 1}, Dim3{16, 2, 1}, Dim3{8, 3, 1}})
    c.launch("trees_of_rows", {1, 1, 1}, block, c.address(cells), 0, 3);
  c.left_on_device("trees_of_rows", "child-launches");
  c.by_warp("child-launches");
}

#endif
