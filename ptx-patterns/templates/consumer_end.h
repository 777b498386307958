// How a consumer that the host launched leaves its queue.
#ifndef KLAP_CONSUMER_END_H
#define KLAP_CONSUMER_END_H

#include "queue.h"

// Counts this block out; the last one leaves the queue empty for the next parent. The second fence acquires
// what the others released, so that they read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapQueue* queue) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&queue->exited, 1u) + 1u != gridDim.x) return;
  __threadfence();
  const unsigned int children = (static_cast<unsigned int>(queue->packed) & KLAP_MAX_RECORDS) + queue->big;
  queue->packed = 0;
  queue->big = 0;
  queue->exited = 0;
  if (queue->report != nullptr)
    *reinterpret_cast<volatile unsigned long long*>(queue->report + KLAP_REPORT_CHILDREN) += children;
}

#endif
