// Blocks that CUDA refuses because the child was compiled for at most 64 threads. The block size comes from
// memory, so no compiler can see which launches are bad; the codes are printed so that native and preloaded
// runs can be compared. A program of its own, because a driver may answer such launches in ways that end the
// context.
#include "program.h"

// The child takes at most 64 threads; the block comes from memory, so no compiler can see that some are too
// many.
__global__ void __launch_bounds__(64) count_bounded(unsigned* blocks) {
  if (threadIdx.x == 0) atomicAdd(blocks, 1U);
}

__global__ void launch_blocks(const unsigned* sizes, int n, unsigned* blocks, int* codes) {
  const int t = threadIdx.x;
  if (t >= n) return;
  count_bounded<<<2, sizes[t]>>>(blocks + t);
  codes[t] = cudaGetLastError();
}

void test_blocks(gpu::Report& report) {
  const std::vector<unsigned> sizes = {64, 32, 1, 0, 65, 128, 1024, 1025, 48};
  const int n = static_cast<int>(sizes.size());
  const gpu::Buffer<unsigned> on_device(sizes);
  const gpu::Buffer<unsigned> blocks(n);
  const gpu::Buffer<int> codes(n);
  launch_blocks<<<1, 32>>>(on_device.data(), n, blocks.data(), codes.data());
  gpu::wait("launch_blocks");
  const std::vector<unsigned> ran = blocks.to_host();
  const std::vector<int> code = codes.to_host();
  for (int t = 0; t < n; ++t) {
    std::printf("block of %u for a child of at most 64: code %d, %u blocks ran\n", sizes[t], code[t], ran[t]);
    report.expect(ran[t] == (code[t] == cudaSuccess ? 2U : 0U), "block of %u: %u blocks ran with code %d",
                  sizes[t], ran[t], code[t]);
  }
}

int main() {
  gpu::Report report("refused_blocks");
  test_blocks(report);
  return report.finish();
}
