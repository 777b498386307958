// Many more children at once than CUDA's pool of pending launches holds at its default limit: natively most
// of them are lost. Preloaded all of them run, also where their records have room for one block of the parent
// only, which then runs in as many slices as it has blocks.
//
// The first argument is the number of children, a multiple of the parent's block.
#include "program.h"

constexpr int kBlock = 32;

// The sum changes if a child is missing, runs twice or lacks a thread.
__global__ void add_shares(unsigned* cells, int t) { atomicAdd(cells + t, (threadIdx.x + 1) * (t + 1)); }

__global__ void launch_each(unsigned* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_shares<<<1, 4>>>(cells, t);
}

int main(int argc, char** argv) {
  gpu::Report report("many_children");
  const int children = argc > 1 ? std::atoi(argv[1]) : 262144;
  std::vector<unsigned> want;
  for (int t = 0; t < children; ++t) want.push_back(10u * (t + 1));
  const gpu::Buffer<unsigned> cells(children);
  launch_each<<<children / kBlock, kBlock>>>(cells.data());
  gpu::wait("launch_each");
  report.expect_equal("sums of shares", cells.to_host(), want);
  return report.finish();
}
