// Launches by the documented device-runtime functions instead of <<<>>>: cudaGetParameterBuffer(alignment,
// size), stores into the buffer, cudaLaunchDevice(function, buffer, grid, block, shared, stream). Libraries
// that launch from kernels use them. Some launches are refused, and the code says so as it does natively.
#include "program.h"

struct Arguments {
  int* cells;
  int begin;
  short step;
};

__global__ void fill(Arguments a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&a.cells[a.begin + i], a.step);
}

// Thread t fills grids[t] blocks of 32 cells from 64 * t on.
__global__ void launch_fill(int* cells, const int* grids, int n, int* codes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  auto* const buffer = static_cast<Arguments*>(cudaGetParameterBuffer(alignof(Arguments), sizeof(Arguments)));
  buffer->cells = cells;
  buffer->begin = 64 * t;
  buffer->step = static_cast<short>(t % 100 + 1);
  codes[t] = cudaLaunchDevice(reinterpret_cast<void*>(fill), buffer, dim3(grids[t]), dim3(32), 0, nullptr);
}

int main() {
  gpu::Report report("documented");
  constexpr int kThreads = 1000;
  std::vector<int> grids(kThreads);
  int children = 0;
  for (int t = 0; t < kThreads; ++t) {
    grids[t] = t % 10 == 7 ? 0 : 1 + t % 2;  // an empty grid is refused
    children += grids[t] > 0 ? 1 : 0;
  }
  const gpu::Buffer<int> on_device(grids);
  const gpu::Buffer<int> cells(64 * kThreads);
  const gpu::Buffer<int> codes(kThreads);
  launch_fill<<<8, 128>>>(cells.data(), on_device.data(), kThreads, codes.data());
  gpu::wait("launch_fill");
  const std::vector<int> found = cells.to_host();
  const std::vector<int> code = codes.to_host();
  for (int t = 0; t < kThreads; ++t) {
    report.expect((code[t] != cudaSuccess) == (grids[t] == 0), "launch %d gave code %d", t, code[t]);
    for (int i = 0; i < 64; ++i) {
      const int wanted = i < 32 * grids[t] ? t % 100 + 1 : 0;
      report.expect(found[64 * t + i] == wanted, "cell %d of launch %d is %d instead of %d", i, t,
                    found[64 * t + i], wanted);
    }
  }
  std::printf("%d children; an empty grid gives code %d\n", children, code[7]);
  return report.finish();
}
