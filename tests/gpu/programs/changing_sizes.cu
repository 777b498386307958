// Children that are small in some launches and large in others. The library looks at the sizes of some
// launches, and runs the children of later ones thread by thread or in their blocks. Every thread counts
// once, whichever it is.
#include "program.h"

constexpr int kParents = 1'400;  // threads, each of which launches a child
constexpr int kBlock = 128;
constexpr int kCells = 256;  // of a child
constexpr int kLaunches = 30;

__host__ __device__ int threads_of(int parent, int least) { return least + parent % 6; }

__global__ void count(unsigned* cells, int threads) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < threads) atomicAdd(cells + i, static_cast<unsigned>(i + 1));
}

__global__ void parent(unsigned* cells, int least) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= kParents) return;
  const int threads = threads_of(t, least);
  count<<<(threads + kBlock - 1) / kBlock, kBlock>>>(cells + t * kCells, threads);
}

int main() {
  gpu::Report report("changing_sizes");
  gpu::Buffer<unsigned> cells(static_cast<size_t>(kParents) * kCells);
  std::vector<unsigned> expected(static_cast<size_t>(kParents) * kCells, 0);
  for (const int least : {8, 250, 8, 250}) {
    for (int launch = 0; launch < kLaunches; ++launch) {
      parent<<<(kParents + 255) / 256, 256>>>(cells.data(), least);
      gpu::wait("parent");
    }
    for (int t = 0; t < kParents; ++t) {
      for (int i = 0; i < threads_of(t, least); ++i)
        expected[static_cast<size_t>(t) * kCells + i] += kLaunches * static_cast<unsigned>(i + 1);
    }
    report.expect_equal("cells", cells.to_host(), expected);
  }
  return report.finish();
}
