// Children that only whole warps take part in, in the ways that programs write it: with warpSize, with two
// conditions at once, with a mask in a register that holds other things too; and blocks of which all but the
// last one leave once they have said so with a fence.
#include "case.h"

constexpr int kThreads = 12;
constexpr int kWarp = 32;
constexpr int kBlock = 96;
constexpr int kBlocks = 9;  // of a child

#ifdef __CUDACC__

constexpr unsigned kAll = 0xffffffffU;

__device__ __forceinline__ int sum_of_warp(int value) {
  for (int lanes = warpSize / 2; lanes > 0; lanes /= 2) value += __shfl_down_sync(kAll, value, lanes);
  return value;
}
// The sum of a block: of each warp's lanes, then by the first warp.
__global__ void sum_of_block(const int* cells, int* sums) {
  __shared__ int parts[kWarp];
  const unsigned lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  int value = sum_of_warp(cells[blockIdx.x * kBlock + threadIdx.x]);
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / warpSize ? parts[lane] : 0;
  if (warp == 0) value = sum_of_warp(value);
  if (threadIdx.x == 0) sums[blockIdx.x] = value;
}
// So many warps of each block leave that the others must not wait for.
__global__ void reverse_in_warps(int* cells, const int* warps) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x), some = warps[blockIdx.x];
  if (thread / warpSize >= some) return;
  int* const mine = cells + blockIdx.x * kBlock;
  held[thread] = mine[thread];
  __syncthreads();
  mine[thread] = held[some * kWarp - 1 - thread];
}
// The first warp has more to do if the block has found something.
__global__ void unite_if_found(const int* cells, int* found, int least) {
  __shared__ int some;
  const int own = cells[blockIdx.x * kBlock + threadIdx.x];
  const unsigned votes = __ballot_sync(kAll, own >= least);
  if (threadIdx.x == 0) some = __popc(votes);
  __syncthreads();
  if (some > 2 && threadIdx.x < kWarp) {
    int all = own;
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) all |= __shfl_xor_sync(kAll, all, lanes);
    if (threadIdx.x == 0) found[blockIdx.x] = all;
  }
}
// Lanes that are found odd keep the votes where the mask was.
__global__ void keep_votes(int* cells) {
  int* const own = cells + blockIdx.x * kBlock + threadIdx.x;
  unsigned kept = 0, votes = 0;
  asm volatile(
      "{ .reg .pred odd; setp.ne.s32 odd, %2, 0; mov.u32 %0, -1; vote.sync.ballot.b32 %1, odd, %0;\n"
      "selp.b32 %0, %1, %0, odd; }"
      : "=&r"(kept), "=&r"(votes)
      : "r"(*own % 2));
  *own = static_cast<int>(kept) >= 0 ? __popc(votes) : static_cast<int>(~kept);
}
// All blocks add to their child's sums; the last one of them turns these round.
__global__ void turn_by_last(const int* cells, int* sums, int* arrived) {
  __shared__ bool last;
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  atomicAdd(sums + thread, cells[blockIdx.x * kBlock + thread]);
  __threadfence();
  __syncthreads();
  if (thread == 0) last = atomicAdd(arrived, 1) == kBlocks - 1;
  __syncthreads();
  if (!last) return;
  held[thread] = atomicAdd(sums + thread, 0);
  __syncthreads();
  atomicExch(sums + thread, held[kBlock - 1 - thread]);
}

extern "C" __global__ void sum_parent(const int* cells, int* sums) {
  sum_of_block<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock, sums + threadIdx.x * kBlocks);
}
extern "C" __global__ void reverse_parent(int* cells, const int* warps) {
  reverse_in_warps<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock,
                                        warps + threadIdx.x * kBlocks);
}
extern "C" __global__ void unite_parent(const int* cells, int* found, int least) {
  unite_if_found<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock, found + threadIdx.x * kBlocks,
                                      least);
}
extern "C" __global__ void votes_parent(int* cells) {
  keep_votes<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock);
}
extern "C" __global__ void turn_parent(const int* cells, int* sums, int* arrived) {
  turn_by_last<<<kBlocks, kBlock>>>(cells + threadIdx.x * kBlocks * kBlock, sums + threadIdx.x * kBlock,
                                    arrived + threadIdx.x);
}

#else

#include <algorithm>

namespace {

using Values = std::vector<int>;

constexpr int kAllBlocks = kThreads * kBlocks;

Values start() {
  Values values;
  for (int i = 0; i < kAllBlocks * kBlock; ++i) values.push_back(i * 7 % 23 + i / kBlock % 5);
  return values;
}

int warps_of(int block) { return block * 5 % 4; }

}  // namespace

KLAP_CASE(warps_add_up, "lanes of a warp add what lanes of another block hold") {
  const Values cells = start();
  Values sums(kAllBlocks, 0);
  for (size_t i = 0; i < cells.size(); ++i) sums[i / kBlock] += cells[i];
  const auto given = c.input("cells", cells);
  const auto out = c.buffer("sums", Values(kAllBlocks, -1), sums);
  c.launch("sum_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(given), c.address(out));
  c.rewritten("sum_parent");
}
KLAP_CASE(warps_leave_by_their_number,
          "warps that have left hold up others, or take part in the next block") {
  Values after = start(), warps;
  for (int b = 0; b < kAllBlocks; ++b) {
    warps.push_back(warps_of(b));
    std::reverse(after.begin() + b * kBlock, after.begin() + b * kBlock + warps_of(b) * kWarp);
  }
  const auto cells = c.buffer("cells", start(), after);
  const auto given = c.input("warps", warps);
  c.launch("reverse_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(given));
  c.rewritten("reverse_parent");
}
KLAP_CASE(warps_agree_by_two_conditions, "lanes shuffle with those of a block that found nothing") {
  constexpr int kLeast = 24;
  const Values cells = start();
  Values found(kAllBlocks, -1);
  for (int b = 0; b < kAllBlocks; ++b) {
    const auto first = cells.begin() + b * kBlock;
    if (std::count_if(first, first + kWarp, [](int cell) { return cell >= kLeast; }) <= 2) continue;
    found[static_cast<size_t>(b)] = 0;
    std::for_each(first, first + kWarp, [&](int cell) { found[static_cast<size_t>(b)] |= cell; });
  }
  const auto given = c.input("cells", cells);
  const auto out = c.buffer("found", Values(kAllBlocks, -1), found);
  c.launch("unite_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(given), c.address(out), kLeast);
  c.rewritten("unite_parent");
}
KLAP_CASE(warps_vote_by_a_mask_that_goes, "a mask is taken for what its register holds later") {
  const Values before = start();
  Values after = before;
  for (size_t i = 0; i < before.size(); ++i) {
    unsigned votes = 0;
    for (size_t lane = 0; lane < kWarp; ++lane)
      votes |= static_cast<unsigned>(before[i / kWarp * kWarp + lane] % 2) << lane;
    const unsigned kept = before[i] % 2 != 0 ? votes : ~0U;
    after[i] = static_cast<int>(kept) >= 0 ? __builtin_popcount(votes) : static_cast<int>(~kept);
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("votes_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  c.rewritten("votes_parent");
}
KLAP_CASE(last_block_stays, "blocks that leave behind a fence hold up the last one") {
  const Values cells = start();
  Values sums(kThreads * kBlock, 0);
  for (size_t i = 0; i < cells.size(); ++i) sums[i / kBlock / kBlocks * kBlock + i % kBlock] += cells[i];
  for (int t = 0; t < kThreads; ++t) std::reverse(sums.begin() + t * kBlock, sums.begin() + (t + 1) * kBlock);
  const auto given = c.input("cells", cells);
  const auto out = c.buffer("sums", Values(kThreads * kBlock, 0), sums);
  const auto arrived = c.buffer("arrived", Values(kThreads, 0), Values(kThreads, kBlocks));
  c.launch("turn_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(given), c.address(out), c.address(arrived));
  c.rewritten("turn_parent");
}

#endif
