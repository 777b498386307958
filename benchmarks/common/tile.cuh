// How the promotion programs (los, pd, pt, sc, unq, upd) cut a sequence into tiles, and what a block computes
// about its tile.
//
// A tile is consecutive elements, 16 or 1 for each thread of one block of 512, which holds them in registers:
// 8,192, as in the KLAP paper, or 512, where a link has so little to do that the way from link to link is
// what counts. Every warp has consecutive elements, 32 at a time, so that loads are coalesced and the order
// of the elements is that of warps, then turns, then lanes: ranks come from ballots, and a block needs one
// barrier to count.
#pragma once

#include <cuda_runtime.h>

#include <klap/annotate.cuh>

namespace bench {

constexpr int kTileBlock = 512;
constexpr int kTileWarps = kTileBlock / 32;
template <int kPerThread>
constexpr int kTile = kTileBlock* kPerThread;
template <int kPerThread>
constexpr int kWarpElements = 32 * kPerThread;
constexpr int kFlatBlocksPerSm = 3;  // registers for a tile in each, and enough loads in flight
constexpr unsigned kAllLanes = 0xffffffffU;

template <int kPerThread>
__host__ __device__ constexpr int tiles_for(int elements) {
  return (elements + kTile<kPerThread> - 1) / kTile<kPerThread>;
}

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x / 32); }

// Where the thread's element number `i` is in the whole sequence.
template <int kPerThread>
__device__ __forceinline__ int element_index(int tile, int i) {
  return tile * kTile<kPerThread> + warp_index() * kWarpElements<kPerThread> + i * 32 + lane_index();
}

// How a chain's kernel is compiled: as it is timed, with lost launches counted, or with the place marked up
// to which a link needs nothing of those before it, as a programmer who helps klap_jit would.
enum class Link { Plain, Counting, Marked };

template <Link kLink>
__device__ __forceinline__ void mark_overlap() {
  if constexpr (kLink == Link::Marked) KLAP_OVERLAP_BOUNDARY();
}

// Operations on one value of each warp or tile. Both are commutative.
struct Sum {
  using Value = int;
  static constexpr int kIdentity = 0;
  __device__ static int combine(int a, int b) { return a + b; }
};

struct Highest {
  using Value = float;
  static constexpr float kIdentity = -__builtin_huge_valf();
  __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

// All lanes' values combined; every lane gets the result.
template <class Operation>
__device__ __forceinline__ typename Operation::Value reduce_warp(typename Operation::Value value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Operation::combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// A block's values, one per warp: those of the warps before the caller's, and all of them.
template <class Operation>
struct WarpShares {
  typename Operation::Value before;
  typename Operation::Value total;
};

// Contains a barrier: when it returns, every thread of the block has come to it. Once per kernel.
template <class Operation>
__device__ __forceinline__ WarpShares<Operation> share_in_block(typename Operation::Value of_warp) {
  __shared__ typename Operation::Value of_warps[kTileWarps];
  if (lane_index() == 0) of_warps[warp_index()] = of_warp;
  __syncthreads();
  const auto mine = lane_index() < kTileWarps ? of_warps[lane_index()] : Operation::kIdentity;
  return {reduce_warp<Operation>(lane_index() < warp_index() ? mine : Operation::kIdentity),
          reduce_warp<Operation>(mine)};
}

}  // namespace bench
