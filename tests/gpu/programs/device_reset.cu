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

void launch_twice(gpu::Report& report, const std::vector<int>& first, const std::vector<int>& changed) {
  const gpu::Buffer<int> cells(kThreads);
  parent<<<2, 128>>>(cells.data());
  gpu::wait("with the first bias");
  report.expect_equal("with the first bias", cells.to_host(), first);
  const int other = 70;
  gpu::check(cudaMemcpyToSymbol(bias, &other, sizeof other), "writing the bias");
  parent<<<2, 128>>>(cells.data());
  gpu::wait("with another bias");
  report.expect_equal("with another bias", cells.to_host(), changed);
}

int main() {
  gpu::Report report("device_reset");
  std::vector<int> first, changed;
  for (int t = 0; t < kThreads; ++t) {
    first.push_back(t + 5);  // the reset brings back the variable's first value
    changed.push_back(t + 70);
  }
  for (int resets = 0; resets < 5; ++resets) {
    launch_twice(report, first, changed);
    gpu::check(cudaDeviceReset(), "cudaDeviceReset");
  }
  launch_twice(report, first, changed);
  return report.finish();
}
