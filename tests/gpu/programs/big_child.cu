// Children of more than 2^16 blocks among small ones: sizes that no compact record of a launch has room for.
#include "program.h"

constexpr int kParents = 64;

// Blocks of the child that parent thread t launches, in x and y.
__host__ __device__ unsigned blocks_x(int t) {
  if (t == 5) return 70000;
  if (t == 23) return 65536;
  if (t == 24) return 65535;
  return t == 40 ? 300 : 3;
}
__host__ __device__ unsigned blocks_y(int t) { return t == 40 ? 301 : 1; }

// Each block adds its linear index + 1, so a block that is missing or runs twice changes the sum.
__global__ void add_index(unsigned long long* sum, unsigned* last) {
  if (threadIdx.x != 0) return;
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  atomicAdd(sum, block + 1ULL);
  atomicMax(last, block);
}

__global__ void launch_mixed(unsigned long long* sums, unsigned* last) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  add_index<<<dim3(blocks_x(t), blocks_y(t)), 32>>>(sums + t, last + t);
}

int main() {
  gpu::Report report("big_child");
  std::vector<unsigned long long> sums;
  std::vector<unsigned> last;
  for (int t = 0; t < kParents; ++t) {
    const unsigned long long blocks = static_cast<unsigned long long>(blocks_x(t)) * blocks_y(t);
    sums.push_back(blocks * (blocks + 1) / 2);
    last.push_back(static_cast<unsigned>(blocks - 1));
  }
  for (int round = 0; round < 3; ++round) {
    const gpu::Buffer<unsigned long long> got_sums(kParents);
    const gpu::Buffer<unsigned> got_last(kParents);
    launch_mixed<<<2, 32>>>(got_sums.data(), got_last.data());
    gpu::wait("launch_mixed");
    report.expect_equal("sums of block indices", got_sums.to_host(), sums);
    report.expect_equal("largest block indices", got_last.to_host(), last);
  }
  return report.finish();
}
