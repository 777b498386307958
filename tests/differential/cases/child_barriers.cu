// Children with barriers, static and dynamic shared memory, warp operations, and early exits before them.
#include "case.h"

constexpr int kThreads = 16;
constexpr int kBlock = 64;
constexpr int kWarp = 32;
constexpr int kOddBlock = 48;  // one warp and a half
constexpr int kManyBlocks = 12;

#ifdef __CUDACC__

__global__ void reverse(int* cells) {
  __shared__ int held[kBlock];
  held[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = held[kBlock - 1 - threadIdx.x];
}
__global__ void rotate(int* cells) {
  extern __shared__ int moved[];
  moved[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = moved[(threadIdx.x + 1) % blockDim.x];
}
__global__ void reverse_and_rotate(int* cells) {
  __shared__ int held[kBlock];
  extern __shared__ int moved[];
  held[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  moved[threadIdx.x] = held[kBlock - 1 - threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = moved[(threadIdx.x + 1) % kBlock];
}
// A block runs after another one in the same threads, and the same shared memory.
__global__ void reverse_blocks(int* cells) {
  __shared__ int held[kBlock];
  int* const mine = cells + blockIdx.x * kBlock;
  held[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = held[kBlock - 1 - threadIdx.x];
}
__global__ void count_after_exit(int* cells, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  atomicAdd(cells, 1);
  __syncthreads();
  if (threadIdx.x == 0) cells[1] = *cells * 2;
}
// Half of every second block leaves, and goes on to the next, where it would write what the rest still reads.
__global__ void swap_after_exit(int* cells) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x), odd = static_cast<int>(blockIdx.x) % 2;
  if (thread >= (odd != 0 ? kBlock : kWarp)) return;
  const int slot = (thread + odd * kWarp) % kBlock;
  int* const mine = cells + blockIdx.x * kBlock;
  held[slot] = mine[thread];
  __syncthreads();
  mine[thread] = held[slot ^ 1];
}
// Whole blocks leave early.
__global__ void reverse_some_blocks(int* cells, int n) {
  __shared__ int held[kBlock];
  if (static_cast<int>(blockIdx.x) >= n) return;
  int* const mine = cells + blockIdx.x * kBlock;
  held[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = held[kBlock - 1 - threadIdx.x];
}
__global__ void sum_block(int* cells) {
  __shared__ int sums[kBlock];
  sums[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) cells[0] = sums[0];
}
__global__ void sum_warp(int* cells) {
  int sum = cells[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  __syncwarp();
  cells[threadIdx.x] = sum;
}
__global__ void sum_warps_of_blocks(int* cells, int n) {
  if (static_cast<int>(blockIdx.x) >= n) return;
  int* const mine = cells + blockIdx.x * kBlock + threadIdx.x;
  int sum = *mine;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  *mine = sum;
}
// One atomic for the lanes that are there, which must all be of this block.
__global__ void count_lanes(int* cells) {
  const unsigned active = __activemask();
  const bool first = static_cast<int>(threadIdx.x) % kWarp == __ffs(static_cast<int>(active)) - 1;
  if (first) atomicAdd(cells + blockIdx.x * kBlock, __popc(active));
}
__global__ void vote_in_odd_block(int* cells) {
  const unsigned odd = __ballot_sync(0xffffffffU, cells[threadIdx.x] % 2 != 0);
  cells[threadIdx.x] = __popc(odd);
}
__global__ void vote_after_exit(int* cells, int n) {
  if (static_cast<int>(threadIdx.x) % kWarp >= n) return;
  const unsigned odd = __ballot_sync(0xffffffffU, cells[threadIdx.x] % 2 != 0);
  cells[threadIdx.x] = __popc(odd);
}
// Each warp meets itself at a barrier of its own.
__global__ void reverse_warps(int* cells) {
  __shared__ int held[kBlock];
  held[threadIdx.x] = cells[threadIdx.x];
  if (threadIdx.x < kWarp) {
    asm volatile("bar.sync 1, 32;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 32;" ::: "memory");
  }
  cells[threadIdx.x] = held[threadIdx.x ^ (kWarp - 1)];
}
__device__ __noinline__ int reversed_in_block(int value) {
  __shared__ int held[kBlock];
  const unsigned thread = static_cast<unsigned>(value) % kBlock;
  held[thread] = value / kBlock;
  __syncthreads();
  return held[kBlock - 1 - thread];
}
__global__ void reverse_by_call(int* cells) {
  const int thread = static_cast<int>(threadIdx.x);
  cells[thread] = reversed_in_block(cells[thread] * kBlock + thread);
}
// A plain update whose value goes from thread to thread on its way.
__global__ void add_through_shared(int* total, int value) {
  __shared__ int held;
  if (threadIdx.x == 0) held = *total;
  __syncthreads();
  if (threadIdx.x == kWarp) *total = held + value;
}

extern "C" __global__ void reverse_parent(int* cells) {
  reverse<<<1, kBlock>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void rotate_parent(int* cells) {
  rotate<<<1, kBlock, kBlock * sizeof(int)>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void rotate_some_parent(int* cells, int bytes) {
  rotate<<<1, kBlock, bytes>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void both_parent(int* cells) {
  reverse_and_rotate<<<1, kBlock, kBlock * sizeof(int)>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void reuse_parent(int* cells) {
  reverse_blocks<<<kManyBlocks, kBlock>>>(cells + threadIdx.x * kManyBlocks * kBlock);
}
extern "C" __global__ void exits_parent(int* cells) {
  count_after_exit<<<1, kBlock>>>(cells + threadIdx.x * kBlock, static_cast<int>(threadIdx.x) * 4 + 1);
}
extern "C" __global__ void swap_parent(int* cells) {
  swap_after_exit<<<kManyBlocks, kBlock>>>(cells + threadIdx.x * kManyBlocks * kBlock);
}
extern "C" __global__ void some_blocks_parent(int* cells) {
  reverse_some_blocks<<<kManyBlocks, kBlock>>>(cells + threadIdx.x * kManyBlocks * kBlock,
                                               static_cast<int>(threadIdx.x) % kManyBlocks);
}
extern "C" __global__ void sum_parent(int* cells) { sum_block<<<1, kBlock>>>(cells + threadIdx.x * kBlock); }
extern "C" __global__ void warp_parent(int* cells) { sum_warp<<<1, kBlock>>>(cells + threadIdx.x * kBlock); }
extern "C" __global__ void some_warps_parent(int* cells) {
  sum_warps_of_blocks<<<kManyBlocks, kBlock>>>(cells + threadIdx.x * kManyBlocks * kBlock,
                                               static_cast<int>(threadIdx.x) % kManyBlocks);
}
extern "C" __global__ void lanes_parent(int* cells) {
  count_lanes<<<kManyBlocks, kBlock>>>(cells + threadIdx.x * kManyBlocks * kBlock);
}
extern "C" __global__ void odd_block_parent(int* cells) {
  vote_in_odd_block<<<1, kOddBlock>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void vote_parent(int* cells) {
  vote_after_exit<<<1, kBlock>>>(cells + threadIdx.x * kBlock, static_cast<int>(threadIdx.x) + 4);
}
extern "C" __global__ void named_parent(int* cells) {
  reverse_warps<<<1, kBlock>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void call_parent(int* cells) {
  reverse_by_call<<<1, kBlock>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void total_parent(int* total) {
  add_through_shared<<<1, kBlock>>>(total, static_cast<int>(threadIdx.x) + 1);
}

#else

#include <functional>

namespace {

using klap::differential::Builder;
using Expected = std::function<int(int block, int thread)>;

int start_of(int i) { return i * 3 % 17; }

// Every thread of the parent's block launches a child of so many blocks, each on `kBlock` cells of its own.
template <class... More>
void of_children(Builder& c, const char* parent, int blocks, const Expected& expected_of,
                 const More&... more) {
  std::vector<int> before, after;
  for (int b = 0; b < kThreads * blocks; ++b) {
    for (int i = 0; i < kBlock; ++i) {
      before.push_back(start_of(b * kBlock + i));
      after.push_back(expected_of(b, i));
    }
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), more...);
}
void of_child(Builder& c, const char* parent, const Expected& expected_of) {
  of_children(c, parent, 1, expected_of);
}

int unchanged(int block, int i) { return start_of(block * kBlock + i); }
int reversed(int block, int i) { return start_of(block * kBlock + kBlock - 1 - i); }
int warp_sum(int block, int i) {
  int sum = 0;
  for (int lane = 0; lane < kWarp; ++lane) sum += start_of(block * kBlock + i / kWarp * kWarp + lane);
  return sum;
}
// How many of the first `lanes` lanes of a thread's warp hold an odd number.
int odd_lanes(int block, int i, int lanes) {
  int odd = 0;
  for (int lane = 0; lane < lanes; ++lane) odd += start_of(block * kBlock + i / kWarp * kWarp + lane) % 2;
  return odd;
}

}  // namespace

KLAP_CASE(child_barrier, "threads of a child's block pass a barrier that others have not reached") {
  of_child(c, "reverse_parent", reversed);
  c.rewritten("reverse_parent");
}
KLAP_CASE(child_dynamic_shared, "a child's dynamic shared memory is too small or another child's") {
  of_child(c, "rotate_parent", [](int t, int i) { return start_of(t * kBlock + (i + 1) % kBlock); });
  c.rewritten("rotate_parent");
}
KLAP_CASE(child_dynamic_shared_of_any_size, "a size of shared memory that is not constant is taken for one") {
  of_children(
      c, "rotate_some_parent", 1, [](int t, int i) { return start_of(t * kBlock + (i + 1) % kBlock); },
      static_cast<int>(kBlock * sizeof(int)));
  c.rewritten("rotate_some_parent");
}
KLAP_CASE(child_static_and_dynamic_shared, "static and dynamic shared memory overlap") {
  of_child(c, "both_parent", [](int t, int i) { return reversed(t, (i + 1) % kBlock); });
  c.rewritten("both_parent");
}
KLAP_CASE(child_shared_reuse, "a block overwrites shared memory that threads of the one before still read") {
  of_children(c, "reuse_parent", kManyBlocks, reversed);
  c.rewritten("reuse_parent");
}
KLAP_CASE(child_exits_before_barrier,
          "a barrier waits for threads that have left, or not for those that stay") {
  of_child(c, "exits_parent", [](int t, int i) {
    const int sum = start_of(t * kBlock) + t * 4 + 1;
    return i == 0 ? sum : i == 1 ? 2 * sum : start_of(t * kBlock + i);
  });
  c.left_on_host("exits_parent", "child-barrier");
}
KLAP_CASE(child_threads_exit_in_every_second_block,
          "threads that have left wait for others in the next block") {
  of_children(c, "swap_parent", kManyBlocks,
              [](int b, int i) { return unchanged(b, b % 2 == 0 && i >= kWarp ? i : i ^ 1); });
  c.left_on_host("swap_parent", "child-barrier");
}
KLAP_CASE(child_blocks_exit_before_barrier, "a block that leaves as a whole holds up the next one") {
  of_children(c, "some_blocks_parent", kManyBlocks, [](int b, int i) {
    return b % kManyBlocks < b / kManyBlocks % kManyBlocks ? reversed(b, i) : unchanged(b, i);
  });
  c.rewritten("some_blocks_parent");
}
KLAP_CASE(child_sums_in_shared, "a barrier in a loop meets that of another round") {
  of_child(c, "sum_parent", [](int t, int i) {
    int sum = 0;
    for (int j = 0; j < kBlock; ++j) sum += unchanged(t, j);
    return i == 0 ? sum : unchanged(t, i);
  });
  c.rewritten("sum_parent");
}
KLAP_CASE(child_shuffle, "lanes of a child shuffle with those of another child") {
  of_child(c, "warp_parent", warp_sum);
  c.rewritten("warp_parent");
}
KLAP_CASE(child_blocks_exit_before_shuffle, "lanes shuffle with those of the next block") {
  of_children(c, "some_warps_parent", kManyBlocks, [](int b, int i) {
    return b % kManyBlocks < b / kManyBlocks % kManyBlocks ? warp_sum(b, i) : unchanged(b, i);
  });
  c.rewritten("some_warps_parent");
}
KLAP_CASE(child_active_lanes, "lanes of two blocks stand together in a warp") {
  of_children(c, "lanes_parent", kManyBlocks,
              [](int b, int i) { return unchanged(b, i) + (i == 0 ? kBlock : 0); });
  c.rewritten("lanes_parent");
}
KLAP_CASE(child_votes_in_odd_block, "a warp that is not full is filled up with another child's lanes") {
  of_child(c, "odd_block_parent", [](int t, int i) {
    return i >= kOddBlock ? unchanged(t, i) : odd_lanes(t, i, i < kWarp ? kWarp : kOddBlock - kWarp);
  });
  c.left_on_host("odd_block_parent", "child-warp-sync");
}
KLAP_CASE(child_exits_before_vote, "lanes that have left hold up a vote, or take part in it") {
  of_child(c, "vote_parent", [](int t, int i) {
    const int lanes = t + 4;
    return i % kWarp >= lanes ? unchanged(t, i) : odd_lanes(t, i, lanes);
  });
  c.left_on_host("vote_parent", "child-warp-sync");
}
KLAP_CASE(child_barriers_of_warps, "a barrier with a count holds threads of another block") {
  of_child(c, "named_parent", [](int t, int i) { return unchanged(t, i ^ (kWarp - 1)); });
  c.left_on_host("named_parent", "child-barrier");
}
KLAP_CASE(child_barrier_in_function, "a called function's shared memory is lost, or shared by all kernels") {
  of_child(c, "call_parent", reversed);
  c.rewritten("call_parent");
}
KLAP_CASE(child_updates_through_shared,
          "an update is overlooked because its value goes through shared memory") {
  const auto total =
      c.buffer("total", std::vector<int>{5}, std::vector<int>{5 + kThreads * (kThreads + 1) / 2});
  c.launch("total_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(total));
  c.rewritten("total_parent");
  c.by_warp("order-kept");
}

#endif
