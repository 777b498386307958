// Launches in a loop, each of which needs what the one before it left: they run from a queue.
#include "program.h"

constexpr int kThreads = 4, kCells = 3, kLinks = 4, kRounds = 2;

__host__ __device__ constexpr int links(int thread) { return thread % (kLinks + 1); }

__global__ void link(const int* __restrict__ from, int* __restrict__ to, int round) {
  const int cell = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) to[cell] = from[(cell + 1) % kCells] * 3 + cell + round;
}

__global__ void loops(int* cells, int round) {
  int* own = cells + threadIdx.x * (kLinks + 1) * kCells;
#pragma unroll 1
  for (int i = 0; i < links(static_cast<int>(threadIdx.x)); ++i, own += kCells)
    link<<<kCells, 32>>>(own, own + kCells, round);
}

int main() {
  gpu::Report report("loop");
  const int all = kThreads * (kLinks + 1) * kCells;
  gpu::Buffer<int> cells(all);
  for (int round = 0; round < kRounds; ++round) loops<<<1, kThreads>>>(cells.data(), round);
  gpu::wait("rounds");
  std::vector<int> expected(all);
  for (int round = 0; round < kRounds; ++round) {
    for (int thread = 0; thread < kThreads; ++thread) {
      int* own = expected.data() + thread * (kLinks + 1) * kCells;
      for (int i = 0; i < links(thread); ++i, own += kCells) {
        for (int cell = 0; cell < kCells; ++cell)
          own[kCells + cell] = own[(cell + 1) % kCells] * 3 + cell + round;
      }
    }
  }
  report.expect_equal("cells", cells.to_host(), expected);
  return report.finish();
}
