// The threads of parents that launch in loops, and the children whose launches follow each other: common to
// cases/loop_*.cu. Every launch's error is looked at. Children read what the one before wrote, by pointers
// that promise nobody writes there.
#pragma once

#include "case.h"

constexpr int kThreads = 40;
constexpr int kBlocks = 2;
constexpr int kMostRounds = 7;

// How often a thread goes round: also not at all.
KLAP_SHARED constexpr int rounds_of(int thread) { return thread * 5 % (kMostRounds + 1); }
KLAP_SHARED constexpr int follow_up(int value, int round) { return (value * 3 + round) % 1009; }
KLAP_SHARED constexpr int branch_off(int value, int round) { return (value * 5 + 7 * round + 1) % 1009; }

#ifdef __CUDACC__

__device__ int own_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
// What the last launch left behind, which is to be nothing.
__device__ int error() { return 100 * cudaPeekAtLastError() + cudaGetLastError(); }

__global__ void follow(const int* __restrict__ from, int* __restrict__ to, int round) {
  if (threadIdx.x == 0) *to = follow_up(*from, round);
}
__global__ void branch(const int* __restrict__ from, int round, int* __restrict__ to) {
  if (threadIdx.x == 5) *to = branch_off(*from, round);
}

#else

constexpr int kAll = kThreads * kBlocks;

// Cells of `size` for each thread, the first of which is set.
inline std::vector<int> starts(int size) {
  std::vector<int> cells(static_cast<size_t>(kAll * size));
  for (int t = 0; t < kAll; ++t) cells[static_cast<size_t>(t * size)] = t + 5;
  return cells;
}

inline std::vector<int> no_errors() { return std::vector<int>(kAll, 0); }

template <class... Arguments>
inline void launch(klap::differential::Builder& c, const char* parent, Arguments... arguments) {
  c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, arguments...);
}

inline void in_loop(klap::differential::Builder& c, const char* parent, const char* by_warp = "rewritten") {
  c.rewritten(parent);
  c.by_warp(by_warp);
}

#endif
