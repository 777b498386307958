// Launches whose grid is computed where it is passed: compilers move a computation that does not change in a
// loop to its only use, which is between the stores of the call's parameters.
#include "case.h"

constexpr int kThreads = 48;
constexpr int kRounds = 5;
constexpr int kRow = 64;
KLAP_SHARED static constexpr bool launches(int t, int round) { return (t + round) % 3 != 0; }
KLAP_SHARED static constexpr int extent_of(int t) { return 4 * (t % 7 + 1); }

#ifdef __CUDACC__

__global__ void scale(int* row, int n, int round) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) row[i] = row[i] * 3 + round + static_cast<int>(gridDim.x);
}

extern "C" __global__ void sunk_parent(int* cells, const int* choices, int n) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    if (choices[t + i] != 0) scale<<<t % 7 + 1, 4>>>(cells + t * kRow, extent_of(t), i + 1);
  }
}

#else

KLAP_CASE(sunk_computations, "what the scope of a launch computes is lost with it") {
  std::vector<int> cells(kThreads * kRow), choices(kThreads + kRounds);
  for (int i = 0; i < kThreads + kRounds; ++i) choices[i] = launches(i, 0) ? 1 : 0;
  for (int t = 0; t < kThreads; ++t) {
    for (int round = 0; round < kRounds; ++round) {
      if (!launches(t, round)) continue;
      for (int i = 0; i < extent_of(t); ++i) {
        int& cell = cells[t * kRow + i];
        cell = cell * 3 + round + 1 + extent_of(t) / 4;
      }
    }
  }
  const std::vector<int> zeros(kThreads * kRow);
  const auto c0 = c.buffer("cells", zeros, cells), given = c.buffer("choices", choices, choices);
  c.launch("sunk_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(c0), c.address(given), kRounds);
  c.rewritten("sunk_parent");
}

#endif
