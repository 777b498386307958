// Prefix sums of some arrays by recursion. Each block adds up the tiles of one array and launches a block for
// the prefix sums of the tiles' sums. It waits for that block and then adds the offsets to its tiles.
#include "sizes.h"

namespace {

constexpr int tile = 4;

__host__ __device__ int tiles_of(int n) { return (n + tile - 1) / tile; }

}  // namespace

// Block b works on the array that begins at b * stride. The space for sums follows each array.
extern "C" __global__ void scan(unsigned* arrays, int n, int stride);

#ifdef __CUDACC__
extern "C" __global__ void scan(unsigned* arrays, int n, int stride) {
  unsigned* values = arrays + static_cast<size_t>(blockIdx.x) * stride;
  unsigned* sums = values + n;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int k = thread; k < tiles_of(n); k += threads) {
    unsigned sum = 0;
    for (int i = k * tile; i < min(n, (k + 1) * tile); ++i) values[i] = sum += values[i];
    sums[k] = sum;
  }
  __syncthreads();
  if (tiles_of(n) == 1) return;
  if (thread == 0) {
    scan<<<1, 32>>>(sums, tiles_of(n), 0);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  for (int i = tile + thread; i < n; i += threads) values[i] += sums[i / tile - 1];
}
#endif

#ifndef __CUDACC_RTC__
namespace {

// How much space an array and the sums of all levels take.
int space(int n) { return n == 1 ? 2 : n + space(tiles_of(n)); }

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("scan", argc, argv, [](gpu::Report& report, int size) {
    const int n = 7 + 400 * size, arrays = 2 + 10 * size, stride = space(n);
    std::vector<unsigned> values(static_cast<size_t>(arrays) * stride), want;
    for (int array = 0; array < arrays; ++array) {
      unsigned sum = 0;
      for (int i = 0; i < n; ++i) {
        const unsigned value = static_cast<unsigned>(array + i + 1) * 2654435761U;
        values[array * stride + i] = value;
        want.push_back(sum += value);
      }
    }
    gpu::Buffer<unsigned> device_values(values);
    WAITING_LAUNCH(scan, arrays, 32)(device_values.data(), n, stride);
    gpu::wait("scan");
    const std::vector<unsigned> all = device_values.to_host();
    std::vector<unsigned> got;
    for (int array = 0; array < arrays; ++array) {
      const auto first = all.begin() + static_cast<size_t>(array) * stride;
      got.insert(got.end(), first, first + n);
    }
    report.expect_equal("a prefix sum", got, want);
  });
}
#endif
