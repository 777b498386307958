// Programs whose launches keep an order that involves whole subtrees: several recursive launches of a thread,
// tail launches of tail launches, of children, and of a kernel by itself; blocks that differ from launch to
// launch; streams of the block, of the thread and without order beside each other; wide grids behind small
// ones.
//
// Most kernels write into a log, one entry behind the other and without atomics. So two that overlap, or that
// run in another order, leave another log.
#include "case.h"

// An entry of the log, whose first word counts them.
KLAP_SHARED static inline void note(int* log, int value) {
  const int entries = *log;
  log[1 + entries] = value;
  *log = entries + 1;
}
KLAP_SHARED static inline int next_state(int state) {
  return static_cast<int>((state * 1103515245u + 12345u) >> 1);
}

#ifdef __CUDACC__

// ---- a thread's launches into the NULL stream, each with a subtree ----

__global__ void one_note(int* log, int value) { note(log, value); }

// Both halves, then a node that must come behind both.
extern "C" __global__ void halves(int* log, int begin, int end) {
  if (end - begin < 2) return note(log, begin);
  const int middle = begin + (end - begin) / 3 + 1;
  halves<<<1, 1>>>(log, begin, middle);
  halves<<<1, 1>>>(log, middle, end);
  one_note<<<1, 1>>>(log, 1000 + end - begin);
}

extern "C" __global__ void sort_range(int* cells, int* ranges, int begin, int end) {
  if (end - begin < 2) return;
  const int pivot = cells[begin + (end - begin) / 2];
  int low = begin, high = end - 1;
  while (low <= high) {
    while (cells[low] < pivot) ++low;
    while (cells[high] > pivot) --high;
    if (low > high) break;
    const int other = cells[low];
    cells[low++] = cells[high];
    cells[high--] = other;
  }
  ranges[0] += 1;  // of all ranges one after another
  sort_range<<<1, 1>>>(cells, ranges, begin, high + 1);
  sort_range<<<1, 1>>>(cells, ranges, low, end);
}

// ---- tail launches ----

// A kernel that launches itself when it is complete, in another grid and block each time.
extern "C" __global__ void steps(int* state, int* cells, int step) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int all = static_cast<int>(gridDim.x * blockDim.x);
  for (int at = i; at < 160; at += all) cells[at] = next_state(cells[at] + step);
  if (i != 0) return;
  *state = next_state(*state) % 1000;
  if (step > 0) steps<<<1 + *state % 4, 8 + *state % 50, 0, cudaStreamTailLaunch>>>(state, cells, step - 1);
}

// Tail launches of tail launches: A, then what A launches at its end, then B.
extern "C" __global__ void ends(int* log, int value, int depth) {
  note(log, value);
  if (depth == 0) return;
  for (int i = 0; i < 3; ++i) ends<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 10 * value + i, depth - 1);
}

// Children, and an end behind them and behind all that they launch, at every level.
__global__ void sums(int* log, int* leaves, int value, int depth) {
  if (depth == 0) {
    *leaves += value;
    return;
  }
  one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 100 * depth + value);
  sums<<<1, 1>>>(log, leaves, value + 1, depth - 1);
  sums<<<1, 1>>>(log, leaves, value + 2, depth - 1);
}
__global__ void note_sum(int* log, const int* leaves) { note(log, *leaves); }
__global__ void sum_of_leaves(int* log, int* leaves) {
  note_sum<<<1, 1, 0, cudaStreamTailLaunch>>>(log, leaves);
  sums<<<1, 1>>>(log, leaves, 1, 4);
}
extern "C" __global__ void begin_sums(int* log, int* leaves) { sum_of_leaves<<<1, 1>>>(log, leaves); }

// ---- blocks that differ ----

// A sum by halves: each level has half the threads of the one before.
extern "C" __global__ void halve(int* cells) {
  const unsigned int t = threadIdx.x;
  cells[t] += cells[t + blockDim.x];
  if (t == 0 && blockDim.x > 1) halve<<<1, blockDim.x / 2, 0, cudaStreamTailLaunch>>>(cells);
}

// Blocks and grids from data, some of which CUDA refuses. Then the next one is launched, which it takes.
extern "C" __global__ void sizes(int* errors, const int* blocks, int* cells, int at, int count) {
  const int i = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  if (blockIdx.x != 0) return;
  cells[64 * at + i] = static_cast<int>(blockDim.x + 10 * blockDim.y + 100 * gridDim.x);
  if (i != 0 || at == count) return;
  const int* const size = blocks + 4 * at;
  sizes<<<size[0], dim3(size[1], size[2], size[3])>>>(errors, blocks, cells, at + 1, count);
  errors[at] = cudaGetLastError();
  if (errors[at] == cudaSuccess) return;
  sizes<<<size[4], dim3(size[5], size[6], size[7])>>>(errors, blocks, cells, at + 2, count);
  errors[at + 1] = cudaGetLastError();
}

// ---- streams beside each other ----

// Launches of a thread into its own stream keep their order, with their subtrees.
__global__ void in_thread_stream(int* log, int value, int depth) {
  if (depth == 0) return note(log, value);
  in_thread_stream<<<1, 1, 0, cudaStreamPerThread>>>(log, 3 * value + 1, depth - 1);
  in_thread_stream<<<1, 1, 0, cudaStreamPerThread>>>(log, 3 * value + 2, depth - 1);
}
extern "C" __global__ void thread_streams(int* logs) {
  int* const log = logs + 64 * threadIdx.x;
  for (int i = 0; i < 3; ++i)
    in_thread_stream<<<1, 1, 0, cudaStreamPerThread>>>(log, static_cast<int>(threadIdx.x) + 100 * i, 3);
}

__global__ void add_one(int* cell, int depth) {
  if (threadIdx.x == 0) atomicAdd(cell, 1);
  if (threadIdx.x == 0 && depth > 0) add_one<<<2, 2, 0, cudaStreamFireAndForget>>>(cell, depth - 1);
}
__global__ void note_cell(int* log, int* cell) { note(log, atomicAdd(cell, 0)); }
// The NULL stream waits for what a grid in it has launched without order. The tail waits for everything.
__global__ void streams(int* log, int* cells) {
  note_cell<<<1, 1, 0, cudaStreamTailLaunch>>>(log, cells + 1);
  add_one<<<2, 2, 0, cudaStreamFireAndForget>>>(cells + 1, 3);
  add_one<<<3, 2>>>(cells, 2);
  note_cell<<<1, 1>>>(log, cells);
  add_one<<<2, 1>>>(cells, 4);
  note_cell<<<1, 1>>>(log, cells);
}

extern "C" __global__ void begin_streams(int* log, int* cells) { streams<<<1, 1>>>(log, cells); }

// ---- a sequence of wide grids ----

__global__ void smooth(const int* from, int* to, int width, int height) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  const int left = from[y * width + (x + width - 1) % width], below = from[(y + 1) % height * width + x];
  to[y * width + x] = next_state(from[y * width + x] + 2 * left + 3 * below) & 0xffff;
}
__global__ void smooth_again(int* a, int* b, int width, int height) {
  const dim3 block(8, 4), grid((width + 7) / 8, (height + 3) / 4);
  smooth<<<grid, block>>>(a, b, width, height);
  smooth<<<grid, block>>>(b, a, width, height);
}
extern "C" __global__ void smooth_often(int* a, int* b, int width, int height, int rounds) {
  for (int i = 0; i < rounds; ++i) smooth_again<<<1, 1>>>(a, b, width, height);
}

// Grids of many blocks that all launch: the blocks' NULL streams have nothing to do with each other.
__global__ void node(int* logs, int value, int depth) {
  int* const log = logs + 40 * blockIdx.x;
  if (depth == 0) return note(log, value);
  for (int i = 0; i < 3; ++i) one_note<<<1, 1>>>(log, value + i);
  node<<<1, 1>>>(log, value + 3, depth - 1);
  one_note<<<1, 1>>>(log, value + 4);
}
extern "C" __global__ void many_nodes(int* logs, int blocks) { node<<<blocks, 1>>>(logs, 7, 2); }

#else

namespace {

using klap::differential::Builder;

std::vector<int> empty_log() { return std::vector<int>(400); }

void executed(Builder& c, const char* parent, const char* on_device, const char* by_warp = nullptr) {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp != nullptr ? by_warp : on_device);
}

void halves(int* log, int begin, int end) {
  if (end - begin < 2) return note(log, begin);
  const int middle = begin + (end - begin) / 3 + 1;
  halves(log, begin, middle);
  halves(log, middle, end);
  note(log, 1000 + end - begin);
}

int count_ranges(std::vector<int>& cells, int begin, int end) {
  if (end - begin < 2) return 0;
  const auto at = [&](int i) -> int& { return cells[static_cast<size_t>(i)]; };
  const int pivot = at(begin + (end - begin) / 2);
  int low = begin, high = end - 1;
  while (low <= high) {
    while (at(low) < pivot) ++low;
    while (at(high) > pivot) --high;
    if (low > high) break;
    std::swap(at(low), at(high));
    ++low, --high;
  }
  return 1 + count_ranges(cells, begin, high + 1) + count_ranges(cells, low, end);
}

void ends(int* log, int value, int depth) {
  note(log, value);
  for (int i = 0; i < 3 && depth > 0; ++i) ends(log, 10 * value + i, depth - 1);
}

void sums(int* log, int* leaves, int value, int depth) {
  if (depth == 0) {
    *leaves += value;
    return;
  }
  sums(log, leaves, value + 1, depth - 1);
  sums(log, leaves, value + 2, depth - 1);
  note(log, 100 * depth + value);
}

void in_thread_stream(int* log, int value, int depth) {
  if (depth == 0) return note(log, value);
  in_thread_stream(log, 3 * value + 1, depth - 1);
  in_thread_stream(log, 3 * value + 2, depth - 1);
}

// Threads and grids that add one.
int add_one(int blocks, int depth) { return depth == 0 ? blocks : blocks + blocks * add_one(2, depth - 1); }

void smooth(const std::vector<int>& from, std::vector<int>& to, int width, int height) {
  const auto at = [&](int x, int y) {
    return from[static_cast<size_t>(y % height * width + (x + width) % width)];
  };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      to[static_cast<size_t>(y * width + x)] =
          next_state(at(x, y) + 2 * at(x - 1, y) + 3 * at(x, y + 1)) & 0xffff;
  }
}

void node(int* log, int value, int depth) {
  if (depth == 0) return note(log, value);
  for (int i = 0; i < 3; ++i) note(log, value + i);
  node(log, value + 3, depth - 1);
  note(log, value + 4);
}

}  // namespace

KLAP_CASE(executed_halves, "a launch does not wait for the subtree of the one before it") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "recursion with two launches and a note behind them");
  std::vector<int> log = empty_log();
  halves(log.data(), 0, 40);
  const auto of_log = c.buffer("log", empty_log(), log);
  c.launch("halves", {1, 1, 1}, {1, 1, 1}, c.address(of_log), 0, 40);
  executed(c, "halves", "child-launches");
  c.by_warp("some");
}

KLAP_CASE(executed_sort, "two halves of a range are sorted at the same time") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "a sort that counts its ranges");
  std::vector<int> cells, sorted;
  for (int i = 0, state = 5; i < 150; ++i) cells.push_back((state = next_state(state)) % 1000);
  sorted = cells;
  const std::vector<int> ranges = {count_ranges(sorted, 0, 150)};
  const auto of_cells = c.buffer("cells", cells, sorted);
  const auto of_ranges = c.buffer("ranges", std::vector<int>(1), ranges);
  c.launch("sort_range", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), c.address(of_ranges), 0, 150);
  executed(c, "sort_range", "child-launches");
}

KLAP_CASE(executed_steps, "a kernel that launches itself at its end begins before it is complete") {
  c.contract(
      "A kernel may launch itself as its own tail any number of times: no depth of nesting is used up.",
      "25 steps, their grids and blocks from data");
  constexpr int kSteps = 25;
  int state = 77;
  std::vector<int> cells(160), before;
  for (int i = 0; i < 160; ++i) cells[static_cast<size_t>(i)] = i * i;
  before = cells;
  for (int step = kSteps; step >= 0; --step) {
    for (int& cell : cells) cell = next_state(cell + step);
    state = next_state(state) % 1000;
  }
  const auto of_state = c.buffer("state", std::vector<int>{77}, std::vector<int>{state});
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("steps", {2, 1, 1}, {32, 1, 1}, c.address(of_state), c.address(of_cells), kSteps);
  executed(c, "steps", "stream-unsupported");
}

KLAP_CASE(executed_ends, "a tail launch begins before those of the one before it are complete") {
  c.contract(
      "A grid's tail launches run one after another, each behind all descendants of the one before it.",
      "three tail launches on each of four levels");
  std::vector<int> log = empty_log();
  ends(log.data(), 1, 4);
  const auto of_log = c.buffer("log", empty_log(), log);
  c.launch("ends", {1, 1, 1}, {1, 1, 1}, c.address(of_log), 1, 4);
  executed(c, "ends", "stream-unsupported");
}

KLAP_CASE(executed_sums, "an end does not wait for grandchildren, or a child not for the end before it") {
  c.contract(
      "A tail launch begins when all grids are complete that its grid launches into other streams, before or "
      "after it, with their descendants.",
      "a tail launch of every grid of a tree");
  std::vector<int> log = empty_log(), leaves(1);
  sums(log.data(), leaves.data(), 1, 4);
  note(log.data(), leaves[0]);
  const auto of_log = c.buffer("log", empty_log(), log);
  const auto of_leaves = c.buffer("leaves", std::vector<int>(1), leaves);
  c.launch("begin_sums", {1, 1, 1}, {1, 1, 1}, c.address(of_log), c.address(of_leaves));
  executed(c, "begin_sums", "child-launches");
}

KLAP_CASE(executed_halved_blocks, "a block has another size than it was launched with") {
  c.contract("A child has the grid and the blocks that its launch names, in up to three dimensions each.",
             "each tail launch has half the threads of its grid");
  std::vector<int> cells(128), before;
  for (int i = 0; i < 128; ++i) cells[static_cast<size_t>(i)] = i % 10;
  before = cells;
  for (size_t threads = 64; threads >= 1; threads /= 2) {
    for (size_t t = 0; t < threads; ++t) cells[t] += cells[t + threads];
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("halve", {1, 1, 1}, {64, 1, 1}, c.address(of_cells));
  executed(c, "halve", "stream-unsupported");
}

KLAP_CASE(executed_sizes, "a launch of a size that CUDA refuses is made, or has another error") {
  c.contract(
      "A launch of a size that the device does not allow is refused with an error, and the launches around "
      "it keep their order.",
      "sizes from memory, some of which are refused");
  constexpr int kInvalid = 9;  // cudaErrorInvalidConfiguration
  const std::vector<int> blocks = {3, 40, 1, 1, 1, 0, 1, 1, 2, 4,  3, 2, 0, 8, 1, 1,    1, 20, 1, 1, 1, 5,
                                   7, 1,  4, 1, 1, 1, 1, 1, 1, 65, 1, 2, 1, 1, 1, 2000, 1, 1,  5, 9, 1, 1};
  const int count = static_cast<int>(blocks.size()) / 4;
  std::vector<int> errors, cells(size_t{64} * static_cast<size_t>(count + 1));
  const auto run = [&](int at, int grid, int x, int y, int z) {
    for (int i = 0; i < x * y * z; ++i) cells[static_cast<size_t>(64 * at + i)] = x + 10 * y + 100 * grid;
  };
  run(0, 2, 32, 1, 1);
  for (int i = 0; i < count; ++i) {
    const int* const size = blocks.data() + size_t{4} * static_cast<size_t>(i);
    const bool is_refused = size[0] < 1 || size[1] < 1 || size[1] > 1024 || size[3] > 64;
    errors.push_back(is_refused ? kInvalid : 0);
    if (!is_refused) run(i + 1, size[0], size[1], size[2], size[3]);
  }
  const auto of_errors = c.buffer("errors", std::vector<int>(errors.size(), -1), errors);
  const auto of_blocks = c.input("blocks", blocks);
  const auto of_cells = c.buffer("cells", std::vector<int>(cells.size()), cells);
  c.launch("sizes", {2, 1, 1}, {32, 1, 1}, c.address(of_errors), c.address(of_blocks), c.address(of_cells), 0,
           count);
  executed(c, "sizes", "child-launches");
}

KLAP_CASE(executed_thread_streams, "a thread's stream does not wait for a subtree, or is another thread's") {
  c.contract("Every thread has a stream of its own, which keeps the order of its launches.",
             "six threads, recursion in the per-thread stream");
  constexpr int kThreads = 6;
  std::vector<int> logs(64 * kThreads);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < 3; ++i) in_thread_stream(logs.data() + 64 * t, t + 100 * i, 3);
  }
  const auto of_logs = c.buffer("logs", std::vector<int>(logs.size()), logs);
  c.launch("thread_streams", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_logs));
  executed(c, "thread_streams", "child-launches", "stream-unsupported");
}

KLAP_CASE(executed_streams,
          "a stream waits for another one, or a grid in it is complete without its children") {
  c.contract(
      "Only the grid's completion waits for fire-and-forget work; a stream waits for that of the grids in "
      "it.",
      "NULL stream, tail and fire-and-forget beside each other");
  std::vector<int> log = empty_log(), cells(2);
  cells[0] = add_one(3, 2);
  note(log.data(), cells[0]);
  cells[0] += add_one(2, 4);
  note(log.data(), cells[0]);
  cells[1] = add_one(2, 3);
  note(log.data(), cells[1]);
  const auto of_log = c.buffer("log", empty_log(), log);
  const auto of_cells = c.buffer("cells", std::vector<int>(2), cells);
  c.launch("begin_streams", {1, 1, 1}, {1, 1, 1}, c.address(of_log), c.address(of_cells));
  executed(c, "begin_streams", "child-launches");
}

KLAP_CASE(executed_wide, "a wide grid begins before the one before it, or loses blocks") {
  c.contract("A grid of several blocks begins when all blocks of the one before it are complete.",
             "a stencil, grids of two dimensions");
  constexpr int kWidth = 50, kHeight = 30, kRounds = 4;
  std::vector<int> a, b(size_t{kWidth} * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) a.push_back(i * 7 % 1000);
  const std::vector<int> before = a;
  for (int i = 0; i < kRounds; ++i) {
    smooth(a, b, kWidth, kHeight);
    smooth(b, a, kWidth, kHeight);
  }
  const auto of_a = c.buffer("a", before, a);
  const auto of_b = c.buffer("b", std::vector<int>(b.size()), b);
  c.launch("smooth_often", {1, 1, 1}, {1, 1, 1}, c.address(of_a), c.address(of_b), kWidth, kHeight, kRounds);
  executed(c, "smooth_often", "child-launches");
}

KLAP_CASE(executed_nodes, "blocks of a grid share a NULL stream, or lose it when they end") {
  c.contract("Each block of a grid has a NULL stream and created streams of its own, which keep their order.",
             "90 blocks, recursion in each block's NULL stream");
  constexpr int kBlocks = 90;
  std::vector<int> logs(40 * kBlocks);
  for (int block = 0; block < kBlocks; ++block) node(logs.data() + 40 * block, 7, 2);
  const auto of_logs = c.buffer("logs", std::vector<int>(logs.size()), logs);
  c.launch("many_nodes", {1, 1, 1}, {1, 1, 1}, c.address(of_logs), kBlocks);
  executed(c, "many_nodes", "child-launches");
}

#endif
