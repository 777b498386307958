// Launches in some lanes of a warp only, work in the others, code after the launch in all.
#include "case.h"

constexpr int kThreads = 160;
KLAP_SHARED static constexpr bool launches(int t) { return t % 3 == 0 || (t / 32 == 2 && t % 32 < 5); }

#ifdef __CUDACC__

__global__ void add_tag(int* cell, int tag) { atomicAdd(cell, tag + static_cast<int>(threadIdx.x)); }

extern "C" __global__ void parent_of_some(int* cells, int* flags) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (launches(t)) {
    add_tag<<<2, 32>>>(cells + t, t);
  } else {
    flags[t] = 7;
  }
  flags[t] += 1;
}

#else

KLAP_CASE(some_lanes, "lanes that do not launch take part, or code after the launch is lost") {
  std::vector<int> cells(kThreads), flags(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    cells[t] = launches(t) ? 2 * (32 * t + 31 * 32 / 2) : 0;
    flags[t] = launches(t) ? 1 : 8;
  }
  const std::vector<int> zeros(kThreads);
  const auto c0 = c.buffer("cells", zeros, cells), f = c.buffer("flags", zeros, flags);
  c.launch("parent_of_some", {5, 1, 1}, {32, 1, 1}, c.address(c0), c.address(f));
  c.rewritten("parent_of_some");
}

#endif
