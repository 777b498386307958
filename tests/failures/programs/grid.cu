// A grid whose threads launch children: the host launches one consumer for all of them.
#include "program.h"

constexpr int kBlocks = 2, kThreads = 8, kChild = 32, kRounds = 3;
constexpr int kValues = kBlocks * kThreads * kChild;

__global__ void add(int* values, int first, int what) { values[first + threadIdx.x] += what; }

__global__ void parents(int* values, int round) {
  const int parent = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (parent % 3 != 1) add<<<1, kChild>>>(values, parent * kChild, parent + round);
}

int main() {
  gpu::Report report("grid");
  gpu::Buffer<int> values(kValues);
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  gpu::wait("zeros");
  for (int round = 0; round < kRounds; ++round)
    parents<<<kBlocks, kThreads, 0, stream>>>(values.data(), round);
  gpu::wait("rounds");
  gpu::check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  std::vector<int> expected(kValues);
  for (int i = 0; i < kValues; ++i) {
    const int parent = i / kChild;
    for (int round = 0; round < kRounds; ++round) expected[i] += parent % 3 != 1 ? parent + round : 0;
  }
  report.expect_equal("values", values.to_host(), expected);
  return report.finish();
}
