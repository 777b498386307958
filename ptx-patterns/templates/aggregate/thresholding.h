// Children that the launching thread does not record, because none or few of their threads may have an
// effect. It runs the latter itself, at the place of the launch: one thread of the child after the other, or
// together with the lanes of its warp that have such children, too.
//
// A child that is not recorded has no block in the queue's prefix, no record and nothing to store. It is
// counted if the number of children is asked for.
//
// Constants: KLAP_SERIAL, the most threads of a child that is not recorded, 0 for children of none;
// KLAP_SERIAL_BY_WARPS where lanes share them; KLAP_SERIAL_BLOCK, the threads of a child's block; KLAP_BOUND
// as in flat.h where it is known how many of them may do anything.
#ifndef KLAP_THRESHOLDING_H
#define KLAP_THRESHOLDING_H

#include "aggregate/flat.h"
#include "common/warp.h"

// The threads of a child of that many blocks.
static __device__ __forceinline__ unsigned long long threads_of_child(unsigned long long blocks
#ifdef KLAP_BOUND
                                                                      ,
                                                                      KLAP_BOUND bound
#endif
) {
#ifdef KLAP_BOUND
  return threads_below(bound, blocks * KLAP_SERIAL_BLOCK);
#else
  return blocks * KLAP_SERIAL_BLOCK;
#endif
}

// One atomic for all converged lanes. No consumer of the queue runs meanwhile.
static __device__ __forceinline__ void count_serial_child(const KlapQueue* queue) {
  if (queue->report == nullptr) return;
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane == 31u - __clz(mask)) report_beside_others(queue->report, KLAP_REPORT_CHILDREN, __popc(mask));
}

#ifdef KLAP_SERIAL_BY_WARPS

// One thread of a child that lane `owner` has launched, if `runs`. All lanes of `mask` call it together,
// because it passes on the owners' arguments.
extern "C" __device__ void __klap_child_body_of(unsigned int ctaid_x, unsigned int ctaid_y,
                                                unsigned int ctaid_z, unsigned int nctaid_x,
                                                unsigned int nctaid_y, unsigned int nctaid_z,
                                                unsigned int tid_x, unsigned int tid_y, unsigned int tid_z,
                                                unsigned int mask, unsigned int owner, unsigned int runs);

// The first lane up to which the lanes of `mask` have more than `at` threads. `inclusive` is what this lane
// and those below it have. There must be such a lane, of `mask` then, if the result is used.
static __device__ __forceinline__ unsigned int owner_of(unsigned int at, unsigned int inclusive,
                                                        unsigned int mask, unsigned int lane) {
  unsigned int owner = 0;
#pragma unroll
  for (unsigned int step = 16; step > 0; step /= 2) {
    const unsigned int up_to = mask & (~0u >> (32u - owner - step));
    const unsigned int threads = __shfl_sync(mask, inclusive, up_to == 0 ? lane : 31u - __clz(up_to));
    if (up_to == 0 || threads <= at) owner += step;
  }
  return owner;
}

// The lanes that arrive here together stand their children's threads in a row and take one each, again and
// again.
extern "C" __device__ void __klap_run_serial_child(unsigned int threads, unsigned int grid_x) {
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  __syncwarp(mask);  // what each lane has seen and written is seen by all
  const unsigned int inclusive = inclusive_sum(threads, mask, lane);
  const unsigned int total = __shfl_sync(mask, inclusive, 31u - __clz(mask));
  const unsigned int rank = __popc(mask & ((1u << lane) - 1u)), lanes = __popc(mask);
#pragma unroll 1
  for (unsigned int first = 0; first < total; first += lanes) {
    const unsigned int at = first + rank;
    const unsigned int found = owner_of(at, inclusive, mask, lane);
    const unsigned int owner = at < total ? found : lane;
    const unsigned int before = __shfl_sync(mask, inclusive - threads, owner);
    const unsigned int blocks = __shfl_sync(mask, grid_x, owner);
    const unsigned int thread = at - before;
    __klap_child_body_of(thread / KLAP_SERIAL_BLOCK, 0, 0, blocks, 1, 1, thread % KLAP_SERIAL_BLOCK, 0, 0,
                         mask, owner, at < total);
  }
}

#elif KLAP_SERIAL > 0

// The child's code with the launching thread's own operands for its arguments.
extern "C" __device__ void __klap_child_body(unsigned int ctaid_x, unsigned int ctaid_y, unsigned int ctaid_z,
                                             unsigned int nctaid_x, unsigned int nctaid_y,
                                             unsigned int nctaid_z, unsigned int tid_x, unsigned int tid_y,
                                             unsigned int tid_z);

// The first threads of the child, each of which has the place that it has natively.
extern "C" __device__ void __klap_run_serial_child(unsigned int threads, unsigned int grid_x) {
  unsigned int block = 0, thread = 0;
#pragma unroll 1
  for (unsigned int i = 0; i < threads; ++i) {
    __klap_child_body(block, 0, 0, grid_x, 1, 1, thread, 0, 0);
    if (++thread == KLAP_SERIAL_BLOCK) {
      thread = 0;
      ++block;
    }
  }
}

#endif

#endif
