// Taking turns at a queue whose items are made ready while its consumer runs (worklist.cu, ordered.cu).
//
// KlapWorkQueue's `turns` counts in one word the items that have been taken and those that are not done. So a
// block counts off its finished items and takes the next number in one atomic. A block that finds that
// nothing is left knows that this stays so.
#ifndef KLAP_TURNS_H
#define KLAP_TURNS_H

#include "common/memory_order.h"
#include "worklist/work_queue.h"

// Nothing orders a plain store behind the relaxed one that made the item ready.
static __device__ __forceinline__ void clear(unsigned long long* item) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(item), "l"(0ull) : "memory");
}

// Counts off `finished` items that all threads of the block are done with, and takes the numbers of so many
// others in the same atomic. False if there will be no more. Launches of the finished items have been counted
// before: the threads did that before the barrier that led here.
static __device__ __forceinline__ bool change_turns(KlapWorkQueue* queue, unsigned int finished,
                                                    unsigned int others, unsigned int& number) {
  const unsigned long long before = add_global(&queue->turns, KLAP_WORK_TURN * others - finished);
  number = static_cast<unsigned int>(before >> 32);
  if (static_cast<unsigned int>(before) != finished) return true;
  // Nothing is left. Others may wait only if there was something.
  if (finished != 0) asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&queue->done), "r"(1u) : "memory");
  return false;
}

#endif
