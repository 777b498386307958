// Kernels that take memory for their children, wait for them, and free it.
#include "sizes.h"

extern "C" __global__ void each_thread(int* sums, int count);

#ifdef __CUDACC__
extern "C" __global__ void fill(int* cells, int count, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] = first + i;
}

__device__ int sum_of(const int* cells, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += cells[i];
  return sum;
}

// Some threads free their memory at another place than others.
extern "C" __global__ void each_thread(int* sums, int count) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= count) return;
  const int cells = 1 + t * 7 % 13;
  int* const memory = (int*)malloc(cells * sizeof(int));
  if (memory == nullptr) return;
  fill<<<(cells + 3) / 4, 4>>>(memory, cells, t);
  if (t % 3 != 0) {
    cudaDeviceSynchronize();
    sums[t] = sum_of(memory, cells);
    free(memory);
    return;
  }
  fill<<<1, 1>>>(sums, 0, 0);
  cudaDeviceSynchronize();
  sums[t] = sum_of(memory, cells) + 1;
  free(memory);
}
#endif

#ifndef __CUDACC_RTC__
int main(int argc, char** argv) {
  return waiting::at_sizes("memory", argc, argv, [](gpu::Report& report, int size) {
    const int count = 30 + 100 * size, block = 32;
    gpu::Buffer<int> sums(count);
    WAITING_LAUNCH(each_thread, (count + block - 1) / block, block)(sums.data(), count);
    gpu::wait("each thread");
    std::vector<int> right;
    for (int t = 0; t < count; ++t) {
      const int cells = 1 + t * 7 % 13;
      right.push_back(cells * t + cells * (cells - 1) / 2 + (t % 3 == 0 ? 1 : 0));
    }
    report.expect_equal("each thread", sums.to_host(), right);
  });
}
#endif
