// Common code of a promoted chain's blocks: the layout, the writing and reading of words, and waiting.
//
// Constants: KLAP_AREA_BYTES, of the argument areas; KLAP_SLOT_WORDS, KLAP_WORDS and the others of
// promote.cu.
#ifndef KLAP_PROMOTE_LINK_H
#define KLAP_PROMOTE_LINK_H

#include "common/memory_order.h"
#include "promote/promote.h"

#define KLAP_LINK_VALUES (KLAP_LINK_AREA + KLAP_AREA_BYTES)
#define KLAP_LINK_NEXT (KLAP_LINK_AREA + 2 * KLAP_AREA_BYTES)
#define KLAP_LINK_WINDOWS (KLAP_LINK_AREA + 3 * KLAP_AREA_BYTES)
#ifdef KLAP_FAST
#define KLAP_SLOT_STRIDE (KLAP_SLOT_WORDS + 1 + kFastWords)
#else
#define KLAP_SLOT_STRIDE KLAP_SLOT_WORDS
#endif
#if defined(KLAP_BATCH)
#define KLAP_LINK_BYTES \
  (KLAP_PARTS_AT(KLAP_AREA_BYTES, KLAP_SLOT_WORDS) + KLAP_BATCH * KLAP_PART_BYTES(KLAP_AREA_BYTES))
#elif defined(KLAP_LOOK_BACK)
#define KLAP_LINK_BYTES (KLAP_LINK_WINDOWS + 2 * 4 * (1 + KLAP_SLOT_WORDS))
#else
#define KLAP_LINK_BYTES KLAP_LINK_WINDOWS
#endif

// Waiting threads look again after so many nanoseconds, twice as many each time. Longer pauses would be added
// to every link's time.
enum : unsigned int { kShortestPause = 8, kLongestPause = 64, kLooksPerEnd = 4 };

static __device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

static __device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

static __device__ __forceinline__ void exchange_relaxed(unsigned long long* address,
                                                        unsigned long long value) {
  asm volatile("{ .reg .b64 before; atom.relaxed.gpu.exch.b64 before, [%0], %1; }"
               :
               : "l"(address), "l"(value)
               : "memory");
}

static __device__ __forceinline__ void pause_longer(unsigned int& pause) {
  __nanosleep(pause);
  if (pause < kLongestPause) pause *= 2;
}

static __device__ __forceinline__ bool is_leader() {
  return threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
}

// Four bytes of an argument of link `number` and their mark. Two links with the same mark are 2^32 apart, and
// in between the slot has had other marks.
static __device__ __forceinline__ unsigned long long marked(unsigned long long number, unsigned int value) {
  return (number + 1) << 32 | value;
}
static __device__ __forceinline__ bool is_marked(unsigned long long word, unsigned long long number) {
  return static_cast<unsigned int>(word >> 32) == static_cast<unsigned int>(number + 1);
}

static __device__ __forceinline__ unsigned int linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// An address in shared memory as a pointer.
template <class Type>
static __device__ __forceinline__ Type* shared_pointer(unsigned int address) {
  return static_cast<Type*>(__cvta_shared_to_generic(address));
}
static __device__ __forceinline__ KlapLink* link_at(unsigned int link) {
  return shared_pointer<KlapLink>(link);
}
#ifdef KLAP_BATCH
static __device__ __forceinline__ unsigned int part_of(unsigned int link, unsigned int number) {
  return link + KLAP_PARTS_AT(KLAP_AREA_BYTES, KLAP_SLOT_WORDS) + number * KLAP_PART_BYTES(KLAP_AREA_BYTES);
}
#endif
static __device__ __forceinline__ unsigned int* word_at(unsigned int area, unsigned int offset) {
  return shared_pointer<unsigned int>(area + offset);
}

#define KLAP_WORD(offset) +1
enum : unsigned int { kWords = 0 KLAP_WORDS };
#ifdef KLAP_FAST
enum : unsigned int { kFastWords = 0 KLAP_FAST_WORDS };
#endif
#undef KLAP_WORD

static __device__ __forceinline__ unsigned long long* slot_of(const KlapLink* link,
                                                              unsigned long long number) {
  return link->ring + (number & (KLAP_CHAIN_SLOTS - 1)) * KLAP_SLOT_STRIDE;
}

// Where values pass from link to link (KLAP_PASSES), instead of slots: the words of the link whose turn it
// is.
static __device__ __forceinline__ unsigned long long* turn_of(const KlapLink* link) { return link->ring; }

// For the leader: waits until the link before has released this one, and takes the arguments that it passed
// on. False if there is no such link, for chains that know it only by then. Every look acquires: a fence
// behind the last one would take longer than all of them.
static __device__ __forceinline__ bool await_link(const KlapChain* chain, unsigned int link) {
  const unsigned long long number = link_at(link)->number;
  const unsigned long long* const slot = slot_of(link_at(link), number);
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for ([[maybe_unused]] unsigned int look = 1;; ++look) {
    [[maybe_unused]] unsigned int at = 0;
    bool is_there = true;
#define KLAP_WORD(offset)                                                      \
  {                                                                            \
    const unsigned long long word = load_acquire(slot + at++);                 \
    is_there = is_there && is_marked(word, number);                            \
    *word_at(link + KLAP_LINK_AREA, offset) = static_cast<unsigned int>(word); \
  }
    KLAP_WORDS
#undef KLAP_WORD
    if (kWords == 0) is_there = is_marked(load_acquire(slot), number);
    if (is_there) return true;
#if !defined(KLAP_COUNTED) && !defined(KLAP_FAST)
    if (look % kLooksPerEnd == 0) {
      const unsigned long long end = load_relaxed(&chain->end);
      if (end != 0 && number >= end) return false;
    }
#endif
    pause_longer(pause);
  }
}

#endif
