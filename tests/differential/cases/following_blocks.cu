// Recursion in blocks like the launching kernel's own (`<<<grid, blockDim.x>>>`), which are known only when
// the host launches the first one: with barriers and without, of one and several dimensions, beside kernels
// whose blocks are constant. Blocks in which the consumer cannot run all of them are launched as the program
// does.
#include "case.h"

#ifdef __CUDACC__

// A heap-ordered tree of tiles, each turned around by its block.
extern "C" __global__ void turn_tree(const int* from, int* to, int node, int nodes) {
  __shared__ int tile[1024];
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  tile[t] = from[node * threads + t];
  __syncthreads();
  to[node * threads + t] = tile[threads - 1 - t] + threads;
  if (t < 2 && 2 * node + 1 + t < nodes)
    turn_tree<<<1, blockDim.x, 0, cudaStreamFireAndForget>>>(from, to, 2 * node + 1 + t, nodes);
}

// The same without anything in common, in blocks of any form.
extern "C" __global__ void plain_tree(int* to, int node, int nodes) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  const int t = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  to[(node * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x)) * threads + t] +=
      10000 * static_cast<int>(blockDim.x) + 100 * static_cast<int>(blockDim.y) + node + t;
  if (t >= 2 || blockIdx.x != 0) return;
  if (2 * node + 1 + t < nodes)
    plain_tree<<<gridDim.x, blockDim, 0, cudaStreamFireAndForget>>>(to, 2 * node + 1 + t, nodes);
}

// Areas that are filled where they are small, and else taken apart, the first of whose corners decides.
__global__ void fill_area(int* cells, int width, int x, int y, int edge, int value) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (column < edge && row < edge) cells[(y + row) * width + x + column] = value;
}
extern "C" __global__ void take_apart(int* cells, int width, int x, int y, int edge, int value) {
  __shared__ int votes[8];
  const int t = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  x += edge * static_cast<int>(blockIdx.x);
  y += edge * static_cast<int>(blockIdx.y);
  if (t < 8) votes[t] = (x * 3 + y * 5 + t) % 4;
  __syncthreads();
  const bool is_last = edge <= 8 || votes[5] == 0;
  if (t != 0) return;
  const int own = value + votes[7] + x + y;
  if (is_last) {
    const unsigned edge_blocks = (static_cast<unsigned>(edge) + 31) / 32;
    fill_area<<<dim3(edge_blocks, (static_cast<unsigned>(edge) + 3) / 4), dim3(32, 4)>>>(cells, width, x, y,
                                                                                         edge, own);
  } else {
    take_apart<<<dim3(2, 2), dim3(blockDim.x, blockDim.y)>>>(cells, width, x, y, edge / 2, own);
  }
}

// The first launch gives a constant, which those below follow.
extern "C" __global__ void descend(int* cells, int level) {
  cells[level * 48 + static_cast<int>(threadIdx.x)] = static_cast<int>(blockDim.x) * 100 + level;
  if (threadIdx.x == 5 && level > 0) descend<<<1, blockDim.x, 0, cudaStreamFireAndForget>>>(cells, level - 1);
}
extern "C" __global__ void descents(int* cells) { descend<<<1, 48>>>(cells + 480 * threadIdx.x, 9); }

// Other blocks where the host launches it than where it launches itself, and a child that follows both.
__global__ void note_block(int* cell) {
  if (threadIdx.x == 0) *cell = static_cast<int>(blockDim.x);
}
extern "C" __global__ void shrink(int* cells, int level) {
  if (threadIdx.x == 0 && blockIdx.x == 0)
    note_block<<<1, blockDim.x, 0, cudaStreamFireAndForget>>>(cells + level);
  if (threadIdx.x == 1 && level > 0) shrink<<<1, 32, 0, cudaStreamFireAndForget>>>(cells, level - 1);
}

// Of the launching block only the first extent.
extern "C" __global__ void rows(int* cells, int level) {
  const int t = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  atomicAdd(cells + level, static_cast<int>(blockDim.x * 100 + blockDim.y));
  if (t == 0 && level > 0) rows<<<1, blockDim.x>>>(cells, level - 1);
}

#else

namespace {

using klap::differential::Builder;
using klap::differential::Dim3;

void by_grid(Builder& c, const char* parent) {
  c.left_on_device(parent, "child-launches");
  c.by_warp("child-launches");
}

void add_turned_tree(Builder& c, int threads) {
  constexpr int kNodes = 40;
  std::vector<int> from, to;
  for (int i = 0; i < kNodes * threads; ++i) from.push_back(i * 7 % 1000);
  for (int i = 0; i < kNodes * threads; ++i) {
    const int first = i / threads * threads;
    to.push_back(from[static_cast<size_t>(first + threads - 1 - i % threads)] + threads);
  }
  const auto source = c.buffer("from", from, from);
  const auto result = c.buffer("to", std::vector<int>(to.size()), to);
  c.launch("turn_tree", {1, 1, 1}, {static_cast<uint32_t>(threads), 1, 1}, c.address(source),
           c.address(result), 0, kNodes);
}

void add_plain_tree(Builder& c, const Dim3& block, uint32_t grid) {
  constexpr int kNodes = 20;
  const int threads = static_cast<int>(block[0] * block[1] * block[2]);
  std::vector<int> after;
  for (int node = 0; node < kNodes; ++node) {
    for (int i = 0; i < threads * static_cast<int>(grid); ++i)
      after.push_back(static_cast<int>(10000 * block[0] + 100 * block[1]) + node + i % threads);
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("plain_tree", {grid, 1, 1}, block, c.address(cells), 0, kNodes);
}

void take_area_apart(std::vector<int>& cells, int width, int x, int y, int edge, int value) {
  const auto vote = [&](int t) { return (x * 3 + y * 5 + t) % 4; };
  const int own = value + vote(7) + x + y;
  if (edge <= 8 || vote(5) == 0) {
    for (int i = 0; i < edge * edge; ++i)
      cells[static_cast<size_t>((y + i / edge) * width + x + i % edge)] = own;
    return;
  }
  for (int part = 0; part < 4; ++part) {
    take_area_apart(cells, width, x + part % 2 * (edge / 2), y + part / 2 * (edge / 2), edge / 2, own);
  }
}

void add_areas(Builder& c, const Dim3& block) {
  constexpr int kWidth = 128;
  std::vector<int> after(kWidth * kWidth, -1);
  take_area_apart(after, kWidth, 0, 0, kWidth / 2, 1);
  take_area_apart(after, kWidth, kWidth / 2, 0, kWidth / 2, 1);
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  c.launch("take_apart", {2, 1, 1}, block, c.address(cells), kWidth, 0, 0, kWidth / 2, 1);
}

}  // namespace

KLAP_CASE(following_barrier, "threads wait for some that the parent's block does not have") {
  for (const int threads : {64, 256, 32, 33, 1024, 64}) add_turned_tree(c, threads);
  by_grid(c, "turn_tree");
}

KLAP_CASE(following_plain,
          "a thread that the parent's block does not have runs, or one gets another's place") {
  for (const Dim3& block : {Dim3{7, 1, 1}, {5, 3, 2}, {64, 1, 1}, {2, 1, 1}, {33, 2, 1}}) {
    add_plain_tree(c, block, 1);
    add_plain_tree(c, block, 70);
  }
  by_grid(c, "plain_tree");
}

KLAP_CASE(following_areas, "a block that follows the parent's stands beside one that does not") {
  // The third has fewer threads than what it launches, the last is not full of warps.
  for (const Dim3& block : {Dim3{32, 4, 1}, {16, 16, 1}, {8, 4, 1}, {4, 32, 1}, {11, 13, 1}})
    add_areas(c, block);
  by_grid(c, "take_apart");
  c.by_warp("some");
  c.children_never_meet();
}

static void add_constant(klap::differential::Builder& c) {
  constexpr int kThreads = 8;
  std::vector<int> after;
  for (int i = 0; i < kThreads * 480; ++i) after.push_back(4800 + i / 48 % 10);
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("descents", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
}

KLAP_CASE(following_a_constant, "a block that follows a constant one is another") {
  add_constant(c);
  by_grid(c, "descents");
  by_grid(c, "descend");
  c.children_never_meet();
}
KLAP_CASE(following_in_order, "chains overlap that are not shown to be apart") {
  add_constant(c);
  c.left("descents", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(following_two_blocks, "a child gets the block of one of its two launchers") {
  const auto cells = c.buffer("cells", std::vector<int>(6), std::vector<int>{32, 32, 32, 32, 32, 96});
  c.launch("shrink", {3, 1, 1}, {96, 1, 1}, c.address(cells), 5);
  c.left("shrink", "child-launches");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("some");
}

KLAP_CASE(following_one_extent, "a block gets more extents of the parent's than it asks for") {
  std::vector<int> after(6, 16 * 1601);
  after[5] = 64 * 1604;
  const auto cells = c.buffer("cells", std::vector<int>(6), after);
  c.launch("rows", {1, 1, 1}, {16, 4, 1}, c.address(cells), 5);
  by_grid(c, "rows");
}

#endif
