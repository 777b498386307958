// Kernels that take memory for their children, wait for them, and free it.
#include "sizes.h"

extern "C" __global__ void each_thread(int* sums, int count);
extern "C" __global__ void of_block(int* sums, int count);

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

// One thread takes memory, another one waits for the children of all, in each round, and a third one frees
// it.
extern "C" __global__ void of_block(int* sums, int count) {
  __shared__ int* memory;
  if (threadIdx.x == 0) memory = (int*)malloc(blockDim.x * 4 * sizeof(int));
  __syncthreads();
  if (memory == nullptr) return;
  for (int round = 1; round <= count; ++round) {
    fill<<<1, 4>>>(memory + threadIdx.x * 4, 4, threadIdx.x * round);
    __syncthreads();
    if (threadIdx.x == 1) cudaDeviceSynchronize();
    __syncthreads();
    sums[blockIdx.x * blockDim.x + threadIdx.x] += sum_of(memory + threadIdx.x * 4, 4);
    __syncthreads();
  }
  if (threadIdx.x == 2) {
    cudaDeviceSynchronize();
    free(memory);
  }
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

    const int blocks = 1 + 5 * size, rounds = 2 + size;
    gpu::Buffer<int> of_blocks(static_cast<size_t>(blocks) * block);
    WAITING_LAUNCH(of_block, blocks, block)(of_blocks.data(), rounds);
    gpu::wait("of a block");
    right.clear();
    for (int t = 0; t < blocks * block; ++t)
      right.push_back(4 * (t % block) * rounds * (rounds + 1) / 2 + 6 * rounds);
    report.expect_equal("of a block", of_blocks.to_host(), right);
  });
}
#endif
