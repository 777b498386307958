// Children whose grid-stride loop has its rounds dealt out to more threads.
//
// Such a child has `bound` rounds, however many threads it was launched with, and it makes no difference
// which of its threads runs which round, as long as no round touches what another one changes. That arrays of
// different pointers are apart is asked here. Then it is recorded with a larger grid than it was launched
// with; its loop, which steps on by the number of threads, then ends after fewer rounds. Where they are not
// apart, or may not be, it is recorded as it was launched.
//
// A child of one block whose threads count themselves within it stays one block, of as many threads as a
// block may have at the most: what it knows about its place stays true.
//
// Constants: KLAP_ROUNDS where it is so; KLAP_ALL_ROUNDS where each round gets a thread; KLAP_POINTERS, a
// KLAP_POINTER(n) for each pointer to look at, by number; KLAP_SPANS, a KLAP_SPAN(pointer, least, step,
// bytes, use) for what rounds touch by it; KLAP_MOST_BLOCKS where there is a limit, for one block how many
// times its threads fit into one; KLAP_BOUND and KLAP_FLAT of flat.h.
#ifndef KLAP_ROUNDS_H
#define KLAP_ROUNDS_H

#include "aggregate/flat.h"

// A thread that is begun costs as much as a short round. So a child whose threads would have about 32 rounds
// or more each (25 or more where it is one block) gets as many threads as have eight.
#ifdef KLAP_ALL_ROUNDS
static constexpr unsigned int kRoundsEach = 1, kWorthwhile = 1;
#else
static constexpr unsigned int kRoundsEach = 8, kWorthwhile = 4;
#endif

// More, and an index of 32 bits might wrap around where it would not natively.
static constexpr unsigned int kMostRounds = 1u << 26;

// Round i touches `bytes` bytes from pointer + least + i * step on.
struct KlapSpan {
  int pointer;
  long long least;
  unsigned int step, bytes;
  unsigned int use;  // 0 read, 1 updated in any order, 2 written
};
#define KLAP_SPAN(pointer, least, step, bytes, use) {pointer, least, step, bytes, use},

static __device__ __forceinline__ bool are_apart(const unsigned long long* pointers, unsigned int rounds) {
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
      const unsigned long long a_end = a_begin + (rounds - 1ull) * a.step + a.bytes;
      const unsigned long long b_end = b_begin + (rounds - 1ull) * b.step + b.bytes;
      // In place: both are the same memory, and each round has its own part of it.
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
static __device__ __forceinline__ unsigned int blocks_for_rounds(unsigned int blocks, KLAP_BOUND bound,
                                                                 const unsigned long long* pointers) {
  const unsigned int rounds = static_cast<unsigned int>(threads_below(bound, kMostRounds + 1ull));
  unsigned int wanted = (rounds + kRoundsEach * KLAP_FLAT - 1u) / (kRoundsEach * KLAP_FLAT);
  if (rounds > kMostRounds || wanted / kWorthwhile < blocks) return blocks;
#ifdef KLAP_MOST_BLOCKS
  if (wanted > KLAP_MOST_BLOCKS) wanted = KLAP_MOST_BLOCKS;
#endif
  return wanted > blocks && are_apart(pointers, rounds) ? wanted : blocks;
}

#endif
