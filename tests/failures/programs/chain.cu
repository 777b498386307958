// A kernel of one block that launches itself: a chain, which is promoted.
#include "program.h"

constexpr int kLinks = 12, kThreads = 32, kRounds = 2;

__host__ __device__ constexpr int next(int before, int link) { return before * 3 % 1009 + link; }

__global__ void chain(int* values, int link) {
  const int thread = static_cast<int>(threadIdx.x);
  const int before = link == 0 ? thread : values[(link - 1) * kThreads + (thread + 1) % kThreads];
  values[link * kThreads + thread] = next(before, link);
  __syncthreads();
  if (thread == 0 && link + 1 < kLinks) chain<<<1, kThreads>>>(values, link + 1);
}

int main() {
  gpu::Report report("chain");
  gpu::Buffer<int> values(kLinks * kThreads);
  for (int round = 0; round < kRounds; ++round) chain<<<1, kThreads>>>(values.data(), 0);
  gpu::wait("rounds");
  std::vector<int> expected(kLinks * kThreads);
  for (int link = 0; link < kLinks; ++link) {
    for (int thread = 0; thread < kThreads; ++thread) {
      const int before = link == 0 ? thread : expected[(link - 1) * kThreads + (thread + 1) % kThreads];
      expected[link * kThreads + thread] = next(before, link);
    }
  }
  report.expect_equal("values", values.to_host(), expected);
  return report.finish();
}
