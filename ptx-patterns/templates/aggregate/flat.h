// Children that run thread by thread: instead of their blocks, their threads that may have an effect are
// counted and shared out.
//
// The thread that records a child knows its grid, and often the bound that the child's threads first compare
// their linear index with. The queue's prefix then counts the threads whose index is below it. A child that
// has more of them than the prefix has room for is "big" and needs none. The limit follows from the largest
// possible number of records, so that the sum can never carry out of the 40 bits.
//
// Constants: KLAP_FLAT where it is so, the threads of a child's block, or 0 where blocks differ; KLAP_BOUND,
// the bound's type, where it is known; KLAP_BOUND_COMPARED, the type of 64 bits as which it is compared;
// KLAP_BOUND_INCLUSIVE where the bound itself passes.
#ifndef KLAP_FLAT_H
#define KLAP_FLAT_H

#include "common/queue.h"

// A child that counts has at most so many threads: the sum over the lanes of a warp is a number of 32 bits.
#define KLAP_FLAT_MOST_BITS 17

// A child of which so much is counted is big. The queue holds less than 2^(32 - clz) records.
static __device__ __forceinline__ unsigned int big_from(const KlapQueue* queue) {
#ifdef KLAP_FLAT
  const unsigned int bits = 40u - 32u + __clz(queue->capacity);
  return 1u << (bits < KLAP_FLAT_MOST_BITS ? bits : KLAP_FLAT_MOST_BITS);
#else
  return KLAP_BIG_CHILD_BLOCKS;
#endif
}

// The linear indices of a child's `threads` that may pass its guard begin at 0: so many they are. Below 2^31
// threads an index is the same number in 32 bits, read as signed or unsigned, as in 64.
#ifdef KLAP_BOUND
static __device__ __forceinline__ unsigned long long threads_below(KLAP_BOUND given,
                                                                   unsigned long long threads) {
  const KLAP_BOUND_COMPARED bound = given;
  if (threads >> 31 != 0) return threads;
#ifdef KLAP_BOUND_INCLUSIVE
  if (bound < 0) return 0;
  return static_cast<unsigned long long>(bound) >= threads ? threads : bound + 1ull;
#else
  if (bound <= 0) return 0;
  return static_cast<unsigned long long>(bound) >= threads ? threads : bound;
#endif
}
#endif

#endif
