// Sums of a tree in blocks of threads, for today's devices: klap::device_synchronize() waits for the
// children. Without klap_jit it ends the kernel with an error.
#include <klap/annotate.cuh>

#include "sizes.h"

namespace {

constexpr int kWidth = 4, kThreads = 32;

// Node n has the children 4n + 1 to 4n + 4, and the sum of node n is of all below it and its own number.
__global__ void add_up(long* sums, int node, int depth) {
  __shared__ long parts[kThreads];
  parts[threadIdx.x] = threadIdx.x == 0 ? node % 23 : 0;
  __syncthreads();
  if (depth > 0 && threadIdx.x < kWidth) {
    const int child = kWidth * node + 1 + static_cast<int>(threadIdx.x);
    add_up<<<1, kThreads>>>(sums, child, depth - 1);
    if (klap::device_synchronize() == cudaSuccess) parts[threadIdx.x] += sums[child];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  long sum = 0;
  for (const long part : parts) sum += part;
  sums[node] = sum;
}

long on_cpu(int node, int depth) {
  long sum = node % 23;
  for (int child = 1; depth > 0 && child <= kWidth; ++child) sum += on_cpu(kWidth * node + child, depth - 1);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("newer", argc, argv, [](gpu::Report& report, int size) {
    const int depth = 1 + size;
    gpu::Buffer<long> sums(size_t{1} << (2 * depth + 2));
    add_up<<<1, kThreads>>>(sums.data(), 0, depth);
    gpu::wait("add_up");
    report.expect_equal("a tree's sum", std::vector<long>{sums.to_host()[0]}, {on_cpu(0, depth)});
  });
}
