// Children of whose blocks some threads leave while others have still to meet: whole warps or any threads, by
// what they compute or by what they load, before the first barrier, between two of a loop, and where the
// child launches itself.
#include "case.h"

constexpr int kThreads = 12;
constexpr int kWarp = 32;
constexpr int kBlock = 96;
constexpr int kBlocks = 9;  // of a child
constexpr int kRounds = 7;
constexpr int kLevels = 5;

#ifdef __CUDACC__

constexpr unsigned kAll = 0xffffffffU;

// Where threads leave, what they shared last stays.
__device__ __forceinline__ int next_value(const int* held, int value, int thread) {
  return (value * 3 + held[(thread + kWarp) % kBlock] + held[(thread + 1) % kBlock]) % 1000;
}
// After each second round another warp leaves, while the others have still to meet twice a round.
__global__ void fewer_warps(int* cells) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp;
  int* const mine = cells + blockIdx.x * kBlock;
  int value = mine[thread];
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    held[thread] = value;
    __syncthreads();
    value = next_value(held, value, thread);
    __syncthreads();
    if (round == 2 * warp) {
      mine[thread] = -value;
      return;
    }
  }
  mine[thread] = value;
}
// The same with threads from everywhere, for which nothing is left to do.
__global__ void fewer_threads(int* cells) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  int* const mine = cells + blockIdx.x * kBlock;
  int value = mine[thread];
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    held[thread] = value;
    __syncthreads();
    value = next_value(held, value, thread);
    mine[thread] = value;
    __syncthreads();
    if (round == thread % 10) return;
  }
}
// What a block has to do is said by memory, which the child writes elsewhere.
__global__ void reverse_unless_empty(int* cells, const int* lengths, int* empty) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  const int length = lengths[blockIdx.x];
  if (length == 0) {
    if (thread == 0) atomicAdd(empty, 1);
    return;
  }
  int* const mine = cells + blockIdx.x * kBlock;
  const unsigned odd = __ballot_sync(kAll, mine[thread] % 2 != 0);
  held[thread] = mine[thread];
  __syncthreads();
  mine[thread] = held[kBlock - 1 - thread] + 100 * length + 1000 * __popc(odd);
}
// And by shared memory, once the first thread has put it there.
__global__ void vote_unless_told(int* cells, const int* lengths) {
  __shared__ int length;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) length = lengths[blockIdx.x];
  __syncthreads();
  if (length == 0) return;
  int* const mine = cells + blockIdx.x * kBlock;
  const unsigned odd = __ballot_sync(kAll, mine[thread] % 2 != 0);
  mine[thread] = length + __popc(odd);
}
// A tree whose nodes say how deep it goes on below them; leaves have nothing to meet for.
extern "C" __global__ void grow(int* nodes, int* cells, int first) {
  __shared__ int held[kBlock];
  const int self = first + static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int levels = nodes[self];
  int* const mine = cells + self * kBlock;
  if (levels == 0) {
    mine[thread] = -1;
    return;
  }
  held[thread] = self * thread;
  const unsigned odd = __ballot_sync(kAll, (self + thread) % 2 != 0);
  __syncthreads();
  mine[thread] = held[kBlock - 1 - thread] + __popc(odd);
  if (thread == 0) {
    nodes[2 * self + 1] = levels - 1;
    nodes[2 * self + 2] = self % 3 == 0 ? 0 : levels - 1;
    grow<<<2, kBlock>>>(nodes, cells, 2 * self + 1);
  }
}

extern "C" __global__ void warps_parent(int* cells) {
  fewer_warps<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock);
}
extern "C" __global__ void threads_parent(int* cells) {
  fewer_threads<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock);
}
extern "C" __global__ void empty_parent(int* cells, const int* lengths, int* empty) {
  reverse_unless_empty<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock,
                                            lengths + threadIdx.x * kBlocks, empty);
}
extern "C" __global__ void told_parent(int* cells, const int* lengths) {
  vote_unless_told<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock,
                                        lengths + threadIdx.x * kBlocks);
}

#else

#include <functional>

namespace {

using klap::differential::Builder;
using Values = std::vector<int>;

int start_of(int i) { return i * 7 % 23; }

Values start() {
  Values values;
  for (int i = 0; i < kThreads * kBlocks * kBlock; ++i) values.push_back(start_of(i));
  return values;
}

// One block; `leaves` says in which round a thread does, and with which sign of its value.
void run_rounds(int* cells, int sign, const std::function<int(int thread)>& leaves) {
  Values value(cells, cells + kBlock), held = value;
  for (int round = 0; round < kRounds; ++round) {
    for (int t = 0; t < kBlock; ++t) {
      if (leaves(t) >= round) held[static_cast<size_t>(t)] = value[static_cast<size_t>(t)];
    }
    for (int t = 0; t < kBlock; ++t) {
      if (leaves(t) < round) continue;
      int& own = value[static_cast<size_t>(t)];
      own = (own * 3 + held[static_cast<size_t>((t + kWarp) % kBlock)] +
             held[static_cast<size_t>((t + 1) % kBlock)]) %
            1000;
    }
  }
  for (int t = 0; t < kBlock; ++t) {
    const int own = value[static_cast<size_t>(t)];
    cells[t] = leaves(t) < kRounds ? sign * own : own;
  }
}

void rounds(Builder& c, const char* parent, int sign, const std::function<int(int thread)>& leaves) {
  Values after = start();
  for (int b = 0; b < kThreads * kBlocks; ++b) run_rounds(after.data() + b * kBlock, sign, leaves);
  const auto cells = c.buffer("cells", start(), after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
}

int length_of(int block) { return block * 5 % 3; }

Values lengths() {
  Values values;
  for (int b = 0; b < kThreads * kBlocks; ++b) values.push_back(length_of(b));
  return values;
}

int odd_in_warp(int block, int thread) {
  int odd = 0;
  for (int lane = 0; lane < kWarp; ++lane)
    odd += start_of(block * kBlock + thread / kWarp * kWarp + lane) % 2;
  return odd;
}

void by_block(Values& after, const std::function<int(int block, int thread)>& value) {
  for (int b = 0; b < kThreads * kBlocks; ++b) {
    if (length_of(b) == 0) continue;
    for (int t = 0; t < kBlock; ++t) after[static_cast<size_t>(b * kBlock + t)] = value(b, t);
  }
}

void grow_on_host(Values& nodes, Values& cells, int self) {
  const int levels = nodes[static_cast<size_t>(self)];
  for (int t = 0; t < kBlock; ++t)
    cells[static_cast<size_t>(self * kBlock + t)] = levels == 0 ? -1 : self * (kBlock - 1 - t) + kWarp / 2;
  if (levels == 0) return;
  const auto child = static_cast<size_t>(2 * self + 1);
  nodes[child] = levels - 1;
  nodes[child + 1] = self % 3 == 0 ? 0 : levels - 1;
  grow_on_host(nodes, cells, 2 * self + 1);
  grow_on_host(nodes, cells, 2 * self + 2);
}

}  // namespace

KLAP_CASE(warps_leave_between_barriers, "a warp that has left holds up others, or runs ahead of them") {
  rounds(c, "warps_parent", -1, [](int thread) { return 2 * (thread / kWarp); });
  c.rewritten("warps_parent");
}
KLAP_CASE(threads_leave_between_barriers, "threads that have left hold up others of their warp") {
  rounds(c, "threads_parent", 1, [](int thread) { return thread % 10; });
  c.left_on_host("threads_parent", "child-barrier");  // they do not leave by one branch
}
KLAP_CASE(blocks_leave_by_memory, "a block that leaves by what it loads holds up the next one") {
  Values after = start();
  by_block(after, [](int b, int t) {
    return start_of(b * kBlock + kBlock - 1 - t) + 100 * length_of(b) + 1000 * odd_in_warp(b, t);
  });
  int none = 0;
  for (const int length : lengths()) none += length == 0 ? 1 : 0;
  const auto cells = c.buffer("cells", start(), after);
  const auto given = c.input("lengths", lengths());
  const auto empty = c.buffer("empty", Values{0}, Values{none});
  c.launch("empty_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(given), c.address(empty));
  c.rewritten("empty_parent");
}
KLAP_CASE(blocks_leave_by_shared_memory, "lanes vote with those of the next block") {
  Values after = start();
  by_block(after, [](int b, int t) { return length_of(b) + odd_in_warp(b, t); });
  const auto cells = c.buffer("cells", start(), after);
  const auto given = c.input("lengths", lengths());
  c.launch("told_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(given));
  c.rewritten("told_parent");
}
KLAP_CASE(leaves_of_a_tree, "a leaf of a tree holds up the nodes that are run after it") {
  const size_t nodes = 1U << (kLevels + 2);
  Values before(nodes, -2), cells_after(nodes * kBlock, 0);
  before[0] = kLevels;
  Values after = before;
  grow_on_host(after, cells_after, 0);
  const auto tree = c.buffer("nodes", before, after);
  const auto cells = c.buffer("cells", Values(nodes * kBlock, 0), cells_after);
  c.launch("grow", {1, 1, 1}, {kBlock, 1, 1}, c.address(tree), c.address(cells), 0);
  c.left_on_device("grow", "child-launches");
  c.by_warp("child-launches");
}

#endif
