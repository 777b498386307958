// The first launches of a program leave many more children at once than most queues ever hold, and than
// CUDA's pool of pending launches does at its default limit: natively most of them are lost. Preloaded all of
// them run, in the very first launch: those of a recursion, and grids that wait for each other.
//
// The argument is the number of children of each launch, a multiple of twice the parent's block.
#include "program.h"

constexpr int kBlock = 32;

// The launching grid's threads are the inner nodes of a tree of two levels, and their children the leaves.
__global__ void spread(unsigned* __restrict__ cells, int node, int nodes) {
  const int t = node + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (node != 0) atomicAdd(cells + node - 1, (threadIdx.x + 1) * static_cast<unsigned>(node));
  if (node != 0 || t >= nodes) return;
  spread<<<1, kBlock, 0, cudaStreamFireAndForget>>>(cells, t + 1, nodes);
}

__global__ void write_cell(unsigned* cells, int t) { cells[t] = cells[t] * 5 % 1009 + t; }
__global__ void read_cell(unsigned* cells, int t, int pairs) {
  if (threadIdx.x == 0) cells[pairs + t] += cells[t] + 1;
}

// Both grids are launched into the block's NULL stream, so the second one sees what the first one wrote.
__global__ void write_then_read(unsigned* cells, int pairs) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  write_cell<<<1, 1>>>(cells, t);
  read_cell<<<1, kBlock>>>(cells, t, pairs);
}

// Grids that launch, in the same order, while they run.
__global__ void pass(unsigned* cells, int t, int pairs) {
  if (threadIdx.x != 0) return;
  write_cell<<<1, 1>>>(cells, t);
  read_cell<<<1, kBlock>>>(cells, t, pairs);
}
__global__ void launch_passes(unsigned* cells, int pairs) {
  pass<<<1, kBlock>>>(cells, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), pairs);
}

int main(int argc, char** argv) {
  gpu::Report report("many_pending");
  const int children = argc > 1 ? std::atoi(argv[1]) : 131072, pairs = children / 2;
  std::vector<unsigned> sums, pairs_wanted(2 * pairs);
  for (int t = 0; t < children; ++t) sums.push_back(kBlock * (kBlock + 1) / 2 * static_cast<unsigned>(t + 1));
  for (int t = 0; t < pairs; ++t) {
    pairs_wanted[t] = static_cast<unsigned>(t);
    pairs_wanted[pairs + t] = static_cast<unsigned>(t) + 1;
  }

  const gpu::Buffer<unsigned> cells(children);
  spread<<<children / kBlock, kBlock>>>(cells.data(), 0, children);
  gpu::wait("spread");
  report.expect_equal("sums of leaves", cells.to_host(), sums);

  const gpu::Buffer<unsigned> both(2 * pairs);
  write_then_read<<<pairs / kBlock, kBlock>>>(both.data(), pairs);
  gpu::wait("write_then_read");
  report.expect_equal("cells that were read", both.to_host(), pairs_wanted);

  const gpu::Buffer<unsigned> passed(2 * pairs);
  launch_passes<<<pairs / kBlock, kBlock>>>(passed.data(), pairs);
  gpu::wait("launch_passes");
  report.expect_equal("cells of passes", passed.to_host(), pairs_wanted);
  return report.finish();
}
