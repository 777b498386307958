// Children that launch: chains, trees of several shapes, two kernels that launch each other; and what a child
// that launches itself may see of its launcher and of other threads.
#include "case.h"

constexpr int kLitter = 9;
KLAP_SHARED static inline int litter_of(int plant) { return 2 + plant % (kLitter - 1); }
KLAP_SHARED static inline int value_below(int above, int block) { return (above * 3 + block) % 1009 + 1; }

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
extern "C" __global__ void middle(int* cell, int value) {
  if (threadIdx.x == 0) set<<<1, 32>>>(cell, value * 3);
}
extern "C" __global__ void nested_parent(int* cells) {
  middle<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x));
}
extern "C" __global__ void count_down(int* cells, int depth) {
  cells[depth] = depth + 1;
  if (depth > 0) count_down<<<1, 1>>>(cells, depth - 1);
}
// A heap-ordered binary tree; both halves of a warp launch.
extern "C" __global__ void tree(int* cells, int node, int nodes) {
  if (threadIdx.x == 0) cells[node] = node * node;
  if (threadIdx.x % 32 > 1) return;
  const int next = 2 * node + 1 + static_cast<int>(threadIdx.x % 32);
  if (next < nodes) tree<<<1, 32>>>(cells, next, nodes);
}
__global__ void odd(int* cells, int n);
extern "C" __global__ void even(int* cells, int n) {
  cells[n] = 2;
  if (n > 0) odd<<<1, 1>>>(cells, n - 1);
}
__global__ void odd(int* cells, int n) {
  cells[n] = 1;
  if (n > 0) even<<<1, 1>>>(cells, n - 1);
}

// Ranges of growing size, each three times as long as the one before: grids from one block to hundreds.
extern "C" __global__ void spread(int* cells, int begin, int count, int limit) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) cells[begin + i] = 3 * (begin + i) + 1;
  const int next = begin + count;
  if (i == 0 && next + 3 * count <= limit)
    spread<<<(3 * count + blockDim.x - 1) / blockDim.x, 32>>>(cells, next, 3 * count, limit);
}
// An unbalanced tree.
extern "C" __global__ void rabbits(int* calls, int months) {
  if (threadIdx.x == 0) atomicAdd(calls + months, 1);
  const int next = months - 1 - static_cast<int>(threadIdx.x);
  if (threadIdx.x < 2 && next >= 0) rabbits<<<1, 16>>>(calls, next);
}
extern "C" __global__ void hutches(int* calls, int months) {
  const int own = months - static_cast<int>(blockIdx.x);
  if (own >= 0) rabbits<<<1, 16>>>(calls, own);
}
// Grids of three dimensions.
extern "C" __global__ void cubes(int* cells, int level) {
  const int block = static_cast<int>((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  const int thread = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  cells[(level * 120 + block) * 12 + thread] = level * 10000 + block * 12 + thread + 1;
  if (level > 0 && block == 0 && thread == 11) cubes<<<dim3(5, 6, 4), dim3(2, 3, 2)>>>(cells, level - 1);
}
// Every link reads what its launcher wrote, by a pointer that promises nobody writes there meanwhile.
extern "C" __global__ void relay(const int* __restrict__ from, int* __restrict__ to, int links) {
  const int t = static_cast<int>(threadIdx.x);
  to[t] = from[t] + 1;
  if (t == 0 && links > 0) {
    to[32] = from[32] * 3 % 1000;
    relay<<<1, 1>>>(to, to + 64, links - 1);
  }
}
// Launches with a grid of nothing fail, in one thread and not in the next one that runs in its place.
extern "C" __global__ void stumble(int* errors, int step) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const int before = cudaPeekAtLastError();
  if (step > 0) stumble<<<step % 3, 32>>>(errors, step - 1);
  errors[step] = 100 * before + cudaPeekAtLastError();
}
extern "C" __global__ void stumblers(int* errors) {
  stumble<<<1, 32>>>(errors + 8 * threadIdx.x, static_cast<int>(threadIdx.x) % 6);
}

// Blocks that turn a tile around in shared memory; more of them than a grid has parts.
constexpr int kTile = 64;
extern "C" __global__ void turn(const int* from, int* to, int levels) {
  __shared__ int tile[kTile];
  const int begin = static_cast<int>(blockIdx.x) * kTile, t = static_cast<int>(threadIdx.x);
  tile[t] = from[begin + t];
  __syncthreads();
  to[begin + t] = tile[kTile - 1 - t] + levels;
  const int tiles = 150 * kTile;
  if (blockIdx.x == 7 % gridDim.x && t == 0 && levels > 0)
    turn<<<150, kTile, 0, cudaStreamFireAndForget>>>(from + tiles, to + tiles, levels - 1);
}

// Grids of two to nine blocks, in one row or two, more of them at a time than a device has room for.
extern "C" __global__ void sow(int* plants, int first, int above, int level, int plants_above) {
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int plant = first + block;
  const int value = value_below(above, block);
  if (threadIdx.x == 0) plants[plant] = value;
  if (threadIdx.x != 3 || level == 0) return;
  const int seeds = litter_of(plant);
  const dim3 grid = seeds % 2 == 0 ? dim3(seeds / 2, 2) : dim3(seeds, 1);
  sow<<<grid, 32>>>(plants + plants_above, kLitter * plant, value, level - 1, plants_above * kLitter);
}

#else

static int rabbit_calls(int from, int months) {
  if (from < months) return 0;
  if (from == months) return 1;
  return rabbit_calls(from - 1, months) + (from > 1 ? rabbit_calls(from - 2, months) : 0);
}

static std::vector<int> spread_cells(int limit) {
  std::vector<int> after(static_cast<size_t>(limit), -1);
  int end = 0;
  for (int count = 1; end + count <= limit; count *= 3) end += count;
  for (int i = 0; i < end; ++i) after[static_cast<size_t>(i)] = 3 * i + 1;
  return after;
}

static void add_nested(klap::differential::Builder& c) {
  std::vector<int> after;
  for (int t = 0; t < 64; ++t) after.push_back(3 * t);
  const auto cells = c.buffer("cells", std::vector<int>(64, -1), after);
  c.launch("nested_parent", {1, 1, 1}, {64, 1, 1}, c.address(cells));
}

KLAP_CASE(nested, "a child's child is lost, or not waited for") {
  add_nested(c);
  c.left_on_device("nested_parent", "child-launches");
  c.by_warp("child-launches");
  c.rewritten("middle");
  c.children_never_meet();
}
KLAP_CASE(nested_in_order, "a child's child overlaps with what another thread launched before") {
  add_nested(c);
  c.left("nested_parent", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion, "a chain of launches ends early") {
  std::vector<int> after;
  for (int i = 0; i <= 20; ++i) after.push_back(i + 1);
  const auto cells = c.buffer("cells", std::vector<int>(21), after);
  c.launch("count_down", {1, 1, 1}, {1, 1, 1}, c.address(cells), 20);
  c.left_on_device("count_down", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
}

static void add_tree(klap::differential::Builder& c) {
  const int nodes = 100;
  std::vector<int> after;
  for (int i = 0; i < nodes; ++i) after.push_back(i * i);
  const auto cells = c.buffer("cells", std::vector<int>(nodes, -1), after);
  c.launch("tree", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, nodes);
}

KLAP_CASE(recursive_tree, "a branch of a tree of launches is lost") {
  add_tree(c);
  c.left_on_device("tree", "child-launches");
  c.by_warp("child-launches");
  c.children_never_meet();
}
KLAP_CASE(recursive_tree_in_order, "branches overlap that are not shown to be apart") {
  add_tree(c);
  c.left("tree", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(mutual_recursion, "two kernels that launch each other end early") {
  std::vector<int> after;
  for (int i = 0; i <= 15; ++i) after.push_back(i % 2 == 0 ? 1 : 2);
  const auto cells = c.buffer("cells", std::vector<int>(16), after);
  c.launch("even", {1, 1, 1}, {1, 1, 1}, c.address(cells), 15);
  c.left_on_device("even", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_deep, "a long chain does not come to its end") {
  std::vector<int> after;
  for (int i = 0; i <= 1000; ++i) after.push_back(i + 1);
  const auto cells = c.buffer("cells", std::vector<int>(1001), after);
  c.launch("count_down", {1, 1, 1}, {1, 1, 1}, c.address(cells), 1000);
  c.left_on_device("count_down", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
}

KLAP_CASE(recursion_at_once, "a recursion without a single launch does not end, or is not over at its end") {
  const auto cells = c.buffer("cells", std::vector<int>(3), std::vector<int>{1, 2, 0});
  for (int i = 0; i < 5; ++i) c.launch("count_down", {1, 1, 1}, {1, 1, 1}, c.address(cells), 0);
  c.launch("count_down", {1, 1, 1}, {1, 1, 1}, c.address(cells), 1);
  c.left_on_device("count_down", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
}

KLAP_CASE(recursion_spread, "a block of a grid shared out over several items is lost, or runs twice") {
  const int limit = 9841;  // eight levels
  const auto cells = c.buffer("cells", std::vector<int>(limit, -1), spread_cells(limit));
  c.launch("spread", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, 1, limit);
  c.left_on_device("spread", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_rabbits, "a branch of an unbalanced tree is lost") {
  std::vector<int> after;
  for (int m = 0; m <= 8; ++m) after.push_back(rabbit_calls(8, m));
  const auto calls = c.buffer("calls", std::vector<int>(9), after);
  c.launch("rabbits", {1, 1, 1}, {16, 1, 1}, c.address(calls), 8);
  c.left_on_device("rabbits", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_from_another, "children of a parent that is not the child are lost") {
  std::vector<int> after(9);
  for (int block = 0; block < 6; ++block) {
    for (int m = 0; m <= 8; ++m) after[static_cast<size_t>(m)] += 8 * rabbit_calls(6 - block, m);
  }
  const auto calls = c.buffer("calls", std::vector<int>(9), after);
  c.launch("hutches", {6, 1, 1}, {8, 1, 1}, c.address(calls), 6);
  c.left_on_device("hutches", "child-launches");
  c.by_warp("child-launches");
  c.left_on_device("rabbits", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_cubes, "a block of a grid of three dimensions gets another one's place") {
  std::vector<int> after(3 * 120 * 12);
  for (int level = 0; level < 3; ++level) {
    for (int i = 0; i < (level == 2 ? 12 : 1440); ++i)
      after[static_cast<size_t>(level * 1440 + i)] = level * 10000 + i + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("cubes", {1, 1, 1}, {2, 3, 2}, c.address(cells), 2);
  c.left_on_device("cubes", "child-launches");
  c.by_warp("child-launches");
  c.children_never_meet();
}

KLAP_CASE(recursion_relay, "a child does not see what its launcher wrote before") {
  const int links = 40;
  std::vector<int> before(64 * (links + 2));
  before[0] = 7, before[32] = 5;
  std::vector<int> after = before;
  for (size_t link = 0; link <= links; ++link) {
    after[64 * (link + 1)] = after[64 * link] + 1;
    if (link < links) after[64 * (link + 1) + 32] = after[64 * link + 32] * 3 % 1000;
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("relay", {1, 1, 1}, {1, 1, 1}, c.address(cells), c.address(cells, 256), links);
  c.left_on_device("relay", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
}

KLAP_CASE(recursion_errors, "a thread does not see its own last error, or sees another thread's") {
  std::vector<int> after(8 * 64, -1);
  for (size_t t = 0; t < 64; ++t) {
    for (int step = static_cast<int>(t % 6); step >= 0; --step) {
      const bool refused = step > 0 && step % 3 == 0;
      after[8 * t + static_cast<size_t>(step)] = refused ? 9 : 0;
      if (refused) break;
    }
  }
  const auto errors = c.buffer("errors", std::vector<int>(8 * 64, -1), after);
  c.launch("stumblers", {1, 1, 1}, {64, 1, 1}, c.address(errors));
  c.left_on_device("stumblers", "child-launches");
  c.by_warp("child-launches");
  c.left_on_device("stumble", "child-launches");
  c.by_warp("child-launches");
  c.children_never_meet();
}

KLAP_CASE(recursion_repeated, "a queue is not as it was when it is used again") {
  const auto calls = c.buffer("calls", std::vector<int>(6), [] {
    std::vector<int> after;
    for (int m = 0; m <= 5; ++m) after.push_back(12 * rabbit_calls(5, m));
    return after;
  }());
  const auto cells = c.buffer("cells", std::vector<int>(364, -1), spread_cells(364));
  for (int i = 0; i < 12; ++i) {
    c.launch("rabbits", {1, 1, 1}, {16, 1, 1}, c.address(calls), 5);
    if (i % 4 == 0) {
      c.fill(cells, 0xff);
      c.launch("spread", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, 1, 364);
    }
  }
  c.left_on_device("rabbits", "child-launches");
  c.by_warp("child-launches");
  c.left_on_device("spread", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_two_streams, "recursions in two streams take each other's children") {
  std::vector<int> after;
  for (int m = 0; m <= 6; ++m) after.push_back(3 * rabbit_calls(6, m));
  for (uint32_t stream : {1u, 2u}) {
    const auto calls = c.buffer("calls", std::vector<int>(7), after);
    for (int i = 0; i < 3; ++i) c.launch_in(stream, "rabbits", {1, 1, 1}, {16, 1, 1}, c.address(calls), 6);
  }
  c.left_on_device("rabbits", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_in_tiles, "a block's shared memory is overwritten while the one before still reads it") {
  constexpr int kTileCells = 64, kTiles = 150, kLevels = 2;
  std::vector<int> from, to;
  for (int i = 0; i < (kLevels + 1) * kTiles * kTileCells; ++i) from.push_back(i * 7 % 1000);
  for (int i = 0; i < static_cast<int>(from.size()); ++i) {
    const int level = i / (kTiles * kTileCells);
    const int first = i / kTileCells * kTileCells;
    to.push_back(
        level == 0 && i >= kTileCells ? 0 : from[first + kTileCells - 1 - i % kTileCells] + kLevels - level);
  }
  const auto source = c.buffer("from", from, from);
  const auto result = c.buffer("to", std::vector<int>(to.size()), to);
  c.launch("turn", {1, 1, 1}, {kTileCells, 1, 1}, c.address(source), c.address(result), kLevels);
  c.left_on_device("turn", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(recursion_of_siblings, "of a child's few blocks one is left out or runs twice where many wait") {
  constexpr int kRoots = 30, kLevels = 2;
  std::vector<int> after, level(kRoots);
  for (int i = 0; i < kRoots; ++i) level[static_cast<size_t>(i)] = value_below(5, i);
  for (int l = 0; l <= kLevels; ++l) {
    after.insert(after.end(), level.begin(), level.end());
    std::vector<int> below(level.size() * kLitter);
    for (int plant = 0; plant < static_cast<int>(level.size()); ++plant) {
      const int value = level[static_cast<size_t>(plant)];
      for (int i = 0; value != 0 && i < litter_of(plant); ++i)
        below[static_cast<size_t>(plant * kLitter + i)] = value_below(value, i);
    }
    level = below;
  }
  const auto plants = c.buffer("plants", std::vector<int>(after.size()), after);
  c.launch("sow", {kRoots, 1, 1}, {32, 1, 1}, c.address(plants), 0, 5, kLevels, kRoots);
  c.left_on_device("sow", "child-launches");
  c.by_warp("child-launches");
}

#endif
