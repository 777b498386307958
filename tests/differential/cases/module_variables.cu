// Variables of the module: original and variants must use the same ones, and the host must find them.
#include "case.h"

constexpr int kThreads = 64;

#ifdef __CUDACC__

extern "C" {
__device__ int bias = 3;
__device__ int cells[kThreads] = {11, 12, 13};
__constant__ int factors[4] = {1, 10, 100, 1000};
__device__ int total;
}

__global__ void compute(int t) {
  if (threadIdx.x != 0) return;
  cells[t] += t * factors[t % 4] + bias;
  atomicAdd(&total, 1);
}

extern "C" __global__ void variables_parent() { compute<<<1, 32>>>(static_cast<int>(threadIdx.x)); }

#else

KLAP_CASE(module_variables, "variants have variables of their own, or the host writes other ones") {
  const std::vector<int> factors = {1, 7, 49, 343};
  std::vector<int> before, after;
  for (int t = 0; t < kThreads; ++t) {
    before.push_back(1000 * t);
    after.push_back(1000 * t + 2 * (t * factors[t % 4] + 9));
  }
  c.variable("cells", before, after);
  c.variable("bias", std::vector<int>{9}, std::vector<int>{9});
  c.variable("factors", factors, factors);
  c.variable("total", std::vector<int>{0}, std::vector<int>{2 * kThreads});
  c.launch("variables_parent", {1, 1, 1}, {kThreads, 1, 1});
  c.launch("variables_parent", {1, 1, 1}, {kThreads, 1, 1});
  c.rewritten("variables_parent");
}

#endif
