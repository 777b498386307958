// Launches of a block in order that there is no room for: each runs its child, in order, or is refused with
// CUDA's own error.
#include "case.h"

namespace {
constexpr int kBlocks = 3, kThreads = 160;
}

#ifdef __CUDACC__

// Children of one block count without atomic operations: only one of them may run at a time.
__global__ void count_child(int* run) {
  if (threadIdx.x == 0) *run = *run + 1;
}

extern "C" __global__ void order_refused_parent(int* launched, int* run) {
  if (threadIdx.x >= kThreads) return;  // nobody; but which thread it is counts
  count_child<<<1, 32>>>(run + blockIdx.x);
  const int error = cudaGetLastError();
  atomicAdd(launched + blockIdx.x, error == 0 ? 1 : 0);
  atomicAdd(launched + kBlocks, error == 0 || error == cudaErrorLaunchPendingCountExceeded ? 0 : 1);
}

extern "C" __global__ void order_refused_check(const int* launched, const int* run, int* mistakes) {
  for (int b = 0; b < kBlocks; ++b) mistakes[b] = launched[b] - run[b];
  mistakes[kBlocks] = launched[kBlocks];
}

#else

KLAP_CASE(order_refused, "a launch in order that is refused runs its child, or one that is not is lost") {
  const auto launched = c.buffer("launched", std::vector<int>(kBlocks + 1, 0), std::vector<int>());
  const auto run = c.buffer("run", std::vector<int>(kBlocks, 0), std::vector<int>());
  const auto mistakes =
      c.buffer("mistakes", std::vector<int>(kBlocks + 1, 7), std::vector<int>(kBlocks + 1, 0));
  c.launch("order_refused_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(launched), c.address(run));
  c.launch("order_refused_check", {1, 1, 1}, {1, 1, 1}, c.address(launched), c.address(run),
           c.address(mistakes));
  c.rewritten("order_refused_parent");
  c.by_warp("order-kept");
}

#endif
