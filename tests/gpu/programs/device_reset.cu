// A program that resets the device and goes on: everything kept about the old context's modules and streams
// is void.
#include "program.h"

constexpr int kThreads = 256;

__device__ int bias = 5;

__global__ void set_cell(int* cell, int t) {
  if (threadIdx.x == 0) *cell = t + bias;
}

__global__ void parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set_cell<<<1, 32>>>(cells + t, t);
}

int main() {
  gpu::Report report("device_reset");
  std::vector<int> before;
  std::vector<int> after;
  for (int t = 0; t < kThreads; ++t) {
    before.push_back(t + 70);
    after.push_back(t + 5);  // the reset brings back the variable's first value
  }
  {
    const gpu::Buffer<int> cells(kThreads);
    const int other = 70;
    gpu::check(cudaMemcpyToSymbol(bias, &other, sizeof other), "writing the bias");
    parent<<<2, 128>>>(cells.data());
    gpu::wait("before the reset");
    report.expect_equal("before the reset", cells.to_host(), before);
  }
  gpu::check(cudaDeviceReset(), "cudaDeviceReset");
  const gpu::Buffer<int> cells(kThreads);
  parent<<<2, 128>>>(cells.data());
  gpu::wait("after the reset");
  report.expect_equal("after the reset", cells.to_host(), after);
  return report.finish();
}
