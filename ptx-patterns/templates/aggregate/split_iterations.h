// Children whose grid-stride loop has its iterations dealt out to more threads.
//
// Such a child has `bound` iterations, however many threads it was launched with. It makes no difference
// which of its threads runs which iteration, as long as no iteration touches memory that another one changes.
// The check that arrays of different pointers are apart is made here. If they are, the child is recorded with
// a larger grid than it was launched with. Its loop, which steps on by the number of threads, then ends after
// fewer iterations. If they are not apart, or may not be, it is recorded as it was launched.
//
// A child of one block whose threads count themselves within it stays one block. It gets at most as many
// threads as a block may have. So its knowledge about its place stays true.
//
// Constants: KLAP_SPLIT_ITERATIONS if it is so; KLAP_SPLIT_ALL_ITERATIONS if each iteration gets a thread;
// KLAP_POINTERS, a KLAP_POINTER(n) for each pointer to look at, by number; KLAP_SPANS, a KLAP_SPAN(pointer,
// least, step, bytes, use) for the memory that iterations touch by it; KLAP_MOST_BLOCKS if there is a limit,
// for one block how many times its threads fit into one; KLAP_BOUND and KLAP_FLAT of flat.h.
#ifndef KLAP_SPLIT_ITERATIONS_H
#define KLAP_SPLIT_ITERATIONS_H

#include "aggregate/flat.h"

// Starting a thread costs as much as a short iteration. So a child gets more threads if its threads would
// have about 32 iterations or more each (25 or more if it is one block). It gets as many threads as leave
// eight iterations each.
#ifdef KLAP_SPLIT_ALL_ITERATIONS
static constexpr unsigned int kIterationsEach = 1, kWorthwhile = 1;
#else
static constexpr unsigned int kIterationsEach = 8, kWorthwhile = 4;
#endif

// More, and an index of 32 bits might wrap around where it would not natively.
static constexpr unsigned int kMostIterations = 1u << 26;

// Round i touches `bytes` bytes from pointer + least + i * step on.
struct KlapSpan {
  int pointer;
  long long least;
  unsigned int step, bytes;
  unsigned int use;  // 0 read, 1 updated in any order, 2 written
};
#define KLAP_SPAN(pointer, least, step, bytes, use) {pointer, least, step, bytes, use},

static __device__ __forceinline__ bool are_apart(const unsigned long long* pointers,
                                                 unsigned int iterations) {
  constexpr KlapSpan kSpans[] = {KLAP_SPANS{}};
  constexpr int kCount = sizeof(kSpans) / sizeof(kSpans[0]) - 1;
  bool apart = true;
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < i; ++j) {
      const KlapSpan a = kSpans[i], b = kSpans[j];
      if (a.pointer == b.pointer || (a.use == b.use && a.use != 2u)) continue;
      const unsigned long long a_begin = pointers[a.pointer] + a.least;
      const unsigned long long b_begin = pointers[b.pointer] + b.least;
      const unsigned long long a_end = a_begin + (iterations - 1ull) * a.step + a.bytes;
      const unsigned long long b_end = b_begin + (iterations - 1ull) * b.step + b.bytes;
      // True for accesses in place: both are the same memory, and each iteration has its own part of it.
      const long long least = a.least < b.least ? a.least : b.least;
      const long long a_most = a.least + a.bytes, b_most = b.least + b.bytes;
      const long long most = a_most > b_most ? a_most : b_most;
      const bool in_place =
          a.step == b.step && most - least <= a.step && pointers[a.pointer] == pointers[b.pointer];
      apart = apart && (a_end <= b_begin || b_end <= a_begin || in_place);
    }
  }
  return apart;
}

// The blocks with which a child of so many is recorded.
static __device__ __forceinline__ unsigned int blocks_for_iterations(unsigned int blocks, KLAP_BOUND bound,
                                                                     const unsigned long long* pointers) {
  const unsigned int iterations = static_cast<unsigned int>(threads_below(bound, kMostIterations + 1ull));
  unsigned int wanted = (iterations + kIterationsEach * KLAP_FLAT - 1u) / (kIterationsEach * KLAP_FLAT);
  if (iterations > kMostIterations || wanted / kWorthwhile < blocks) return blocks;
#ifdef KLAP_MOST_BLOCKS
  if (wanted > KLAP_MOST_BLOCKS) wanted = KLAP_MOST_BLOCKS;
#endif
  return wanted > blocks && are_apart(pointers, iterations) ? wanted : blocks;
}

#endif
