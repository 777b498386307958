// The barrier of a child's block that is not as large as the executor's, or whose last warp is not full.
//
// All threads of the child's block come to it, and no others. The executor's other threads wait at the end of
// the child's block (common/exits.h), at barrier 0. A hardware barrier counts whole warps, and may wait for
// each lane that has not ended. So it suits full warps only. A single warp meets by its mask. Several warps
// of which the last one is not full meet by their masks first; then their first lanes count each other.
#ifndef KLAP_CHILD_BARRIER_H
#define KLAP_CHILD_BARRIER_H

#include "executor/grid_records.h"

// A warp that arrives has acquired what the warps before it had released. The last one resets the count, and
// then lets the others go by a new turn. No warp can see another turn before it has itself arrived.
static __device__ __forceinline__ void meet_other_warps(KlapGridBlock* block, unsigned int warps) {
  unsigned int turn, before;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(turn) : "l"(&block->barrier_turn) : "memory");
  asm volatile("atom.acq_rel.cta.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(&block->barrier_warps)
               : "memory");
  if (before + 1 == warps) {
    asm volatile("st.relaxed.cta.u32 [%0], %1;" : : "l"(&block->barrier_warps), "r"(0u) : "memory");
    asm volatile("st.release.cta.u32 [%0], %1;" : : "l"(&block->barrier_turn), "r"(turn + 1) : "memory");
    return;
  }
  unsigned int now;
  do {
    asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(now) : "l"(&block->barrier_turn) : "memory");
  } while (now == turn);
}

// In place of `bar.sync 0` in a child whose block has so many threads.
extern "C" __device__ void __klap_grid_barrier(KlapGridBlock* block, unsigned int threads) {
  constexpr unsigned int kWarp = 32;
  if (threads % kWarp == 0) {
    asm volatile("barrier.sync 1, %0;" : : "r"(threads) : "memory");
    return;
  }
  const unsigned int lane = threadIdx.x % kWarp, left = threads - (threadIdx.x - lane);
  const unsigned int mask = left >= kWarp ? 0xffffffffu : (1u << left) - 1u;
  asm volatile("bar.warp.sync %0;" : : "r"(mask) : "memory");
  if (threads < kWarp) return;
  if (lane == 0) meet_other_warps(block, threads / kWarp + 1);
  asm volatile("bar.warp.sync %0;" : : "r"(mask) : "memory");
}

#endif
