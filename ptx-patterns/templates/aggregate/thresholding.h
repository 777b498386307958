// Children that the launching thread does not record, because none or very few of their threads may have an
// effect. It runs the latter itself, one thread of the child after the other, at the place of the launch.
//
// A child that is not recorded has no block in the queue's prefix, no record and nothing to store. It is
// counted if the number of children is asked for.
//
// Constants: KLAP_SERIAL, the most threads of a child that is not recorded, 0 for children of none;
// KLAP_SERIAL_BLOCK, the threads of a child's block; KLAP_BOUND as in flat.h where it is known how many of
// them may do anything.
#ifndef KLAP_THRESHOLDING_H
#define KLAP_THRESHOLDING_H

#include "aggregate/flat.h"

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
  const unsigned int mask = __activemask();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane == 31u - __clz(mask)) report_beside_others(queue->report, KLAP_REPORT_CHILDREN, __popc(mask));
}

#if KLAP_SERIAL > 0

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
