// How a consumer that the host launched leaves its queue, and which of its blocks have no work. It has as
// many blocks as fit on the device, and often far less to do.
//
// The working blocks count themselves out at one place, and the last one empties the head. With
// KLAP_DOUBLE_BUFFERED the queue is double-buffered: the consumer reads one of its heads (queue.h), and its
// first block empties the other one. Then no block waits for another.
//
// Constants: KLAP_DOUBLE_BUFFERED if it is so.
#ifndef KLAP_CONSUMER_END_H
#define KLAP_CONSUMER_END_H

#include "aggregate/consumer_grid.h"
#include "common/memory_order.h"
#include "common/queue.h"

// The counters that the parent left.
struct KlapCounted {
  unsigned long long packed;
  unsigned int big;
};

static __device__ __forceinline__ unsigned int children_in(const KlapCounted& counted) {
  return (static_cast<unsigned int>(counted.packed) & KLAP_MAX_RECORDS) + counted.big;
}

// For a block that begins. The last one to leave may be writing the head already, if it is the one that will
// be emptied.
static __device__ __forceinline__ KlapCounted counted_in(const KlapQueue* queue) {
  KlapCounted counted;
#ifdef KLAP_DOUBLE_BUFFERED
  counted.packed = queue->packed;
  counted.big = queue->big;
#else
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(counted.packed) : "l"(&queue->packed) : "memory");
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(counted.big) : "l"(&queue->big) : "memory");
#endif
  return counted;
}

// The number of the kernel's blocks that have something to run; these are the first ones. `blocks` blocks
// could share the counted work, and all blocks share big children. One block looks after records that ask for
// nothing. For a block that comes so late that the queue is empty again, the number is 0: rightly, as it is
// not one of them.
static __device__ __forceinline__ unsigned int working_blocks(KLAP_GRID_PARAMETER const KlapCounted& counted,
                                                              unsigned long long blocks) {
  if (counted.big != 0 || blocks >= KLAP_CONSUMER_BLOCKS) return KLAP_CONSUMER_BLOCKS;
  return blocks != 0 ? static_cast<unsigned int>(blocks) : counted.packed != 0 ? 1u : 0u;
}

static __device__ __forceinline__ void empty(KlapCounters* head) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(&head->packed), "l"(0ull) : "memory");
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&head->big), "r"(0u) : "memory");
}

#ifdef KLAP_DOUBLE_BUFFERED

// Makes the other head ready for the next parent. The consumer that used it last is complete: the parent
// ahead of this consumer began behind that one.
static __device__ __forceinline__ void begin(KLAP_GRID_PARAMETER KlapQueue* queue,
                                             const KlapCounted& counted) {
  if (KLAP_CONSUMER_BLOCK != 0 || KLAP_CONSUMER_THREAD != 0) return;
  empty(reinterpret_cast<KlapQueue*>(reinterpret_cast<unsigned char*>(queue) + queue->other));
  report_next(queue->report, KLAP_REPORT_CHILDREN, children_in(counted));
}

static __device__ __forceinline__ void leave(KlapQueue*, unsigned int) {}

#else

static __device__ __forceinline__ void begin(KLAP_GRID_PARAMETER KlapQueue*, const KlapCounted&) {}

// Counts a working block out; the last one leaves the queue empty for the next parent. The second fence
// acquires what the others released. So they have read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapQueue* queue, unsigned int working) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (add_global(&queue->exited, 1u) + 1u != working) return;
  __threadfence();
  const unsigned int children = children_in({queue->packed, queue->big});
  empty(queue);
  queue->exited = 0;
  report_next(queue->report, KLAP_REPORT_CHILDREN, children);
}

#endif

#endif
