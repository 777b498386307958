// Launches of dynamic parallelism version 1.
#include "case.h"

constexpr int kThreads = 128;

#ifdef __CUDACC__

__global__ void add(int* cell, int value) { atomicAdd(cell, value); }

extern "C" __global__ void older_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add<<<t % 3, 32>>>(cells + t, t + 1);
}

#else

namespace {

template <class Expected>
void cells_of(klap::differential::Builder& c, const char* parent, const Expected& expected_of) {
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) expected.push_back(expected_of(t));
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), expected);
  c.launch(parent, {2, 1, 1}, {64, 1, 1}, c.address(cells));
}

}  // namespace

KLAP_CASE(older_launches, "a launch of version 1 is lost") {
  cells_of(c, "older_parent", [](int t) { return t % 3 * 32 * (t + 1); });
  c.rewritten("older_parent");
}

#endif
