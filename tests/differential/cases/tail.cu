// Launches into the tail-launch stream: behind the whole grid and all else that it launched, by one thread of
// the grid or by many, before and behind its other launches. What such a kernel updates plainly is kept apart
// by nothing but that stream.
#include "case.h"

constexpr int kParts = 64, kEach = 20;

#ifdef __CUDACC__

__global__ void part(int* parts, int n, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) parts[i] = round * 3 + i;
}
// Adds up what all children wrote, and all blocks of the parent.
__global__ void join(const int* parts, const int* marks, int n, int* total) {
  __shared__ int sums[32];
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) sum += parts[i] + marks[i / kEach];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 32; ++i) sum += sums[i];
  *total += sum;
}

extern "C" __global__ void fork_join(int* parts, int* marks, int* total, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kParts) part<<<1, 32>>>(parts + i * kEach, kEach, round + i);
  if (threadIdx.x == 0 && blockIdx.x == 0)
    join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, kParts * kEach, total);
  if (i < kParts) marks[i] = round + i;
}
// The launch for the end comes first, and the others have no order.
extern "C" __global__ void join_fork(int* parts, int* marks, int* total, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i == 0) join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, kParts * kEach, total);
  if (i >= kParts) return;
  part<<<1, 32, 0, cudaStreamFireAndForget>>>(parts + i * kEach, kEach, round + i);
  marks[i] = round + i;
}
// By one thread of each block, which is one of the grid where that has one block.
extern "C" __global__ void fork_join_block(int* parts, int* marks, int* total, int round) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < kParts) part<<<1, 32>>>(parts + i * kEach, kEach, round + i);
  if (i < kParts) marks[i] = round + i;
  if (i == 0) join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, kParts * kEach, total);
}
// Nothing but the end, by every thread of a grid of one.
extern "C" __global__ void only_join(int* parts, int* marks, int* total) {
  join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, kParts * kEach, total);
}

// By every thread, of kernels that have nothing to do with each other but read what the whole grid wrote.
__global__ void look(const int* marks, int* seen, int own) {
  int sum = 0;
  for (int i = 0; i < kParts; ++i) sum += marks[i];
  if (threadIdx.x == 0) atomicAdd(seen + own, sum + own);
}
extern "C" __global__ void everyone_looks(int* marks, int* seen) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  look<<<1, 32, 0, cudaStreamTailLaunch>>>(marks, seen, i);
  marks[i] = i;
}
// By every thread, of kernels that update the same.
__global__ void grow(int* cell) {
  if (threadIdx.x == 0) *cell += 1;
}
extern "C" __global__ void everyone_grows(int* cell) {
  const int i = static_cast<int>(threadIdx.x);
  if (i % 2 == 0) grow<<<1, 32, 0, cudaStreamTailLaunch>>>(cell);
}
// Two places, which the stream orders.
__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
extern "C" __global__ void two_ends(int* cell) {
  if (threadIdx.x != 0) return;
  set<<<1, 32, 0, cudaStreamTailLaunch>>>(cell, 3);
  set<<<1, 32, 0, cudaStreamTailLaunch>>>(cell, 4);
}
// Rounds, each behind the one before.
extern "C" __global__ void rounds(int* cells, int n, int left) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int next = cells[(i + 1) % n + (left % 2) * n] + 1;
  atomicExch(cells + i + (1 - left % 2) * n, next);
  if (i == 0 && left > 1) rounds<<<gridDim.x, 32, 0, cudaStreamTailLaunch>>>(cells, n, left - 1);
}
extern "C" __global__ void ends_in_loop(int* cells) {
  if (threadIdx.x != 0) return;
#pragma unroll 1
  for (int i = 0; i < 5; ++i) grow<<<1, 32, 0, cudaStreamTailLaunch>>>(cells);
}

#else

namespace {

using klap::differential::Builder;
using klap::differential::Dim3;

struct Shape {
  Dim3 grid, block;
};

// A parent's launches, each of which writes all parts anew and adds them to the total.
void add(Builder& c, const char* parent, const std::vector<Shape>& shapes, const std::vector<int>& joins) {
  std::vector<int> parts(kParts * kEach), marks(kParts);
  int total = 0, round = 0;
  for (size_t s = 0; s < shapes.size(); ++s) {
    round = 100 * static_cast<int>(s);
    int sum = 0;
    for (int i = 0; i < kParts * kEach; ++i) {
      const int mark = round + i / kEach;
      parts[static_cast<size_t>(i)] = mark * 3 + i % kEach;
      marks[static_cast<size_t>(i / kEach)] = mark;
      sum += parts[static_cast<size_t>(i)] + mark;
    }
    total += sum * joins[s];
  }
  const auto of_parts = c.buffer("parts", std::vector<int>(parts.size()), parts);
  const auto of_marks = c.buffer("marks", std::vector<int>(marks.size()), marks);
  const auto of_total = c.buffer("total", std::vector<int>(1), std::vector<int>{total});
  for (size_t s = 0; s < shapes.size(); ++s) {
    c.launch(parent, shapes[s].grid, shapes[s].block, c.address(of_parts), c.address(of_marks),
             c.address(of_total), 100 * static_cast<int>(s));
  }
}

// Only the grid's end is behind all, and what the host launches there.
void at_the_end(Builder& c, const char* parent, const char* by_warp) {
  c.left_on_device(parent, "stream-unsupported");
  c.by_warp(by_warp);
}

}  // namespace

KLAP_CASE(tail_joins,
          "what is launched for the end begins before another child, or another block, is complete") {
  c.contract(
      "A tail launch begins when all grids are complete that its grid launches into other streams, before or "
      "after it, with their descendants.",
      "64 children of several blocks, one tail launch");
  add(c, "fork_join", {{{4, 1, 1}, {32, 1, 1}}, {{1, 1, 1}, {64, 1, 1}}, {{64, 1, 1}, {1, 1, 1}}}, {1, 1, 1});
  at_the_end(c, "fork_join", "some");
  c.children_never_meet();
}

KLAP_CASE(tail_first, "what is launched for the end begins where it is launched") {
  c.contract(
      "A tail launch begins when all grids are complete that its grid launches into other streams, before or "
      "after it, with their descendants.",
      "the tail launch first, then fire-and-forget");
  add(c, "join_fork", {{{4, 1, 1}, {32, 1, 1}}, {{1, 1, 1}, {96, 1, 1}}}, {1, 1});
  at_the_end(c, "join_fork", "some");
}

KLAP_CASE(tail_of_one_block, "the ends of several blocks overlap") {
  c.contract(
      "A tail launch begins when all threads of its grid have ended, wherever they are when it is launched.",
      "one thread of a block launches, others write");
  add(c, "fork_join_block", {{{1, 1, 1}, {64, 1, 1}}, {{1, 1, 1}, {128, 1, 1}}}, {1, 1});
  at_the_end(c, "fork_join_block", "some");
  c.children_never_meet();
}

KLAP_CASE(tail_of_several_blocks, "the ends of several blocks overlap") {
  c.contract(
      "A grid has one tail stream for all its blocks: what its threads launch there runs one after another.",
      "one thread of each of three blocks");
  add(c, "fork_join_block", {{{3, 1, 1}, {64, 1, 1}}, {{1, 1, 1}, {64, 1, 1}}}, {3, 1});
  at_the_end(c, "fork_join_block", "some");
  c.children_never_meet();
}

KLAP_CASE(tail_of_small_pool, "what is launched for the end runs behind a part of the grid") {
  c.contract(
      "A tail launch begins when all grids are complete that its grid launches into other streams, before or "
      "after it, with their descendants.",
      "40 blocks, more launches than the queue has room for");
  add(c, "fork_join", {{{40, 1, 1}, {32, 1, 1}}, {{2, 1, 1}, {32, 1, 1}}}, {1, 1});
  at_the_end(c, "fork_join", "some");
  c.setting("KLAP_POOL_BYTES", "4K");
  c.setting("KLAP_OPTIMISE", "-executor");  // whose queue has no room there
  c.children_never_meet();
}

KLAP_CASE(tail_alone, "the end of a grid without other launches is lost") {
  c.contract(
      "A tail launch begins when all threads of its grid have ended, wherever they are when it is launched.",
      "one thread, nothing else is launched");
  const auto parts = c.input("parts", std::vector<int>(kParts * kEach, 2));
  const auto marks = c.input("marks", std::vector<int>(kParts, 1));
  const auto total = c.buffer("total", std::vector<int>(1), std::vector<int>{2 * 3 * kParts * kEach});
  for (int i = 0; i < 2; ++i)
    c.launch("only_join", {1, 1, 1}, {1, 1, 1}, c.address(parts), c.address(marks), c.address(total));
  at_the_end(c, "only_join", "stream-unsupported");
}

KLAP_CASE(tail_by_everyone, "an end begins before a block, or another end, is complete") {
  c.contract(
      "A grid has one tail stream for all its blocks: what its threads launch there runs one after another.",
      "every thread of four blocks, kernels that only read");
  std::vector<int> marks, seen;
  for (int i = 0; i < kParts; ++i) marks.push_back(i), seen.push_back(kParts * (kParts - 1) / 2 + i);
  const auto of_marks = c.buffer("marks", std::vector<int>(kParts), marks);
  const auto of_seen = c.buffer("seen", std::vector<int>(kParts), seen);
  c.launch("everyone_looks", {4, 1, 1}, {kParts / 4, 1, 1}, c.address(of_marks), c.address(of_seen));
  c.left("everyone_looks", "stream-unsupported");
  c.executed();
  c.by_warp("stream-unsupported");
}

KLAP_CASE(tail_updates, "ends of a grid overlap") {
  c.contract(
      "A grid has one tail stream for all its blocks: what its threads launch there runs one after another.",
      "every second thread of a block, kernels that update");
  const auto cell = c.buffer("cell", std::vector<int>(1), std::vector<int>{32});
  c.launch("everyone_grows", {1, 1, 1}, {64, 1, 1}, c.address(cell));
  c.left("everyone_grows", "stream-unsupported");
  c.executed();
  c.by_warp("stream-unsupported");
}

KLAP_CASE(tail_twice, "the second end comes before the first") {
  c.contract(
      "A grid's tail launches run one after another, each behind all descendants of the one before it.",
      "two of one thread");
  const auto cell = c.buffer("cell", std::vector<int>(1), std::vector<int>{4});
  c.launch("two_ends", {1, 1, 1}, {32, 1, 1}, c.address(cell));
  c.left("two_ends", "several-sites");
  c.executed();
  c.otherwise_on_device("stream-unsupported");
  c.by_warp("stream-unsupported");
}

KLAP_CASE(tail_rounds, "a round begins before the one before is complete") {
  c.contract(
      "A kernel may launch itself as its own tail any number of times: no depth of nesting is used up.",
      "seven rounds of three blocks");
  constexpr int kCells = 96, kRounds = 7;
  std::vector<int> cells(2 * kCells);
  const std::vector<int> before = cells;
  for (int left = kRounds; left > 0; --left) {
    for (int i = 0; i < kCells; ++i)
      cells[static_cast<size_t>(i + (1 - left % 2) * kCells)] =
          cells[static_cast<size_t>((i + 1) % kCells + (left % 2) * kCells)] + 1;
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("rounds", {3, 1, 1}, {32, 1, 1}, c.address(of_cells), kCells, kRounds);
  c.left("rounds", "child-launches");
  c.executed();
  c.otherwise_on_device("stream-unsupported");
  c.by_warp("stream-unsupported");
}

KLAP_CASE(tail_in_loop, "the ends that one thread launches overlap") {
  c.contract(
      "A grid's tail launches run one after another, each behind all descendants of the one before it.",
      "a loop of one thread");
  const auto cells = c.buffer("cells", std::vector<int>(1), std::vector<int>{5});
  c.launch("ends_in_loop", {1, 1, 1}, {32, 1, 1}, c.address(cells));
  c.left("ends_in_loop", "stream-unsupported");
  c.executed();
  c.by_warp("stream-unsupported");
}

#endif
