// How a consumer that the host launched leaves its queue, and which of its blocks need not even come to it:
// there are as many as fit on the device, and often far less to do. They count themselves out at one place.
#ifndef KLAP_CONSUMER_END_H
#define KLAP_CONSUMER_END_H

#include "queue.h"

// The head of the queue as blocks read it that begin: the last one to leave may be writing it already.
static __device__ __forceinline__ unsigned long long relaxed_packed(const KlapQueue* queue) {
  unsigned long long packed;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(packed) : "l"(&queue->packed) : "memory");
  return packed;
}
static __device__ __forceinline__ unsigned int relaxed_big(const KlapQueue* queue) {
  unsigned int big;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(big) : "l"(&queue->big) : "memory");
  return big;
}

// How many of the kernel's blocks have something to run, the first ones, where `blocks` could share what is
// counted; all of them share big children. One looks after records that ask for nothing. To a block that
// comes so late that the queue is empty again, none have: rightly, as it is not one of them.
static __device__ __forceinline__ unsigned int working_blocks(unsigned long long packed, unsigned int big,
                                                              unsigned long long blocks) {
  if (big != 0 || blocks >= gridDim.x) return gridDim.x;
  return blocks != 0 ? static_cast<unsigned int>(blocks) : packed != 0 ? 1u : 0u;
}

// Counts a working block out; the last one leaves the queue empty for the next parent. The second fence
// acquires what the others released, so that they read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapQueue* queue, unsigned int working) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&queue->exited, 1u) + 1u != working) return;
  __threadfence();
  const unsigned int children = (static_cast<unsigned int>(queue->packed) & KLAP_MAX_RECORDS) + queue->big;
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(&queue->packed), "l"(0ull) : "memory");
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&queue->big), "r"(0u) : "memory");
  queue->exited = 0;
  if (queue->report != nullptr)
    *reinterpret_cast<volatile unsigned long long*>(queue->report + KLAP_REPORT_CHILDREN) += children;
}

#endif
