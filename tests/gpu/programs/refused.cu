// Launches that CUDA refuses: empty grids and grids beyond the limits in y and z, mixed with good ones. The
// parent asks for the error each time; the codes are printed so that native and preloaded runs can be
// compared.
#include "program.h"

__global__ void count_block(unsigned* blocks) {
  if (threadIdx.x == 0) atomicAdd(blocks, 1U);
}

// The error must be there to peek at, be returned once, and be gone then.
__global__ void launch_grids(const uint3* grids, int n, unsigned* blocks, int* codes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  count_block<<<dim3(grids[t].x, grids[t].y, grids[t].z), 64>>>(blocks + t);
  codes[3 * t] = cudaPeekAtLastError();
  codes[3 * t + 1] = cudaGetLastError();
  codes[3 * t + 2] = cudaGetLastError();
}

void test_grids(gpu::Report& report) {
  const std::vector<uint3> grids = {{1, 1, 1}, {0, 1, 1},     {1, 0, 1},     {1, 1, 0},     {0, 0, 0},
                                    {5, 4, 3}, {3, 65535, 1}, {1, 65536, 1}, {1, 1, 65535}, {1, 1, 65536},
                                    {2, 2, 2}, {2, 70000, 1}, {40, 1, 1}};
  const int n = static_cast<int>(grids.size());
  const gpu::Buffer<uint3> on_device(grids);
  const gpu::Buffer<unsigned> blocks(n);
  const gpu::Buffer<int> codes(3 * n);
  launch_grids<<<1, 32>>>(on_device.data(), n, blocks.data(), codes.data());
  gpu::wait("launch_grids");
  const std::vector<unsigned> ran = blocks.to_host();
  const std::vector<int> code = codes.to_host();
  for (int t = 0; t < n; ++t) {
    const uint3 g = grids[t];
    std::printf("grid %u x %u x %u: codes %d %d %d, %u blocks ran\n", g.x, g.y, g.z, code[3 * t],
                code[3 * t + 1], code[3 * t + 2], ran[t]);
    const unsigned wanted = code[3 * t] == cudaSuccess ? g.x * g.y * g.z : 0;
    report.expect(ran[t] == wanted, "grid %u x %u x %u ran %u blocks instead of %u", g.x, g.y, g.z, ran[t],
                  wanted);
    report.expect(code[3 * t] == code[3 * t + 1] && code[3 * t + 2] == cudaSuccess,
                  "the error of launch %d was not returned exactly once", t);
    const bool empty = g.x == 0 || g.y == 0 || g.z == 0;
    report.expect(!empty || code[3 * t] != cudaSuccess, "the empty grid of launch %d was accepted", t);
  }
}

int main() {
  gpu::Report report("refused");
  test_grids(report);
  return report.finish();
}
