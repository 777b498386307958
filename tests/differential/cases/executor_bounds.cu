// Blocks whose sizes are not known before the parent is launched, but whose launches are in blocks no larger
// than the launching one, or than a constant. The executor then has as many threads as the parent's block
// needs. If it had fewer, a child would lack threads, and the cells of these would not be mixed.
#include "case.h"

constexpr int kRow = 256;  // cells of a block of `mark`
KLAP_SHARED static constexpr int mixed(int value, int x, int y) { return (value * 5 + x + 40 * y) & 0xffff; }

#ifdef __CUDACC__

__device__ static void mix_own_cell(int* cells) {
  const unsigned int thread = threadIdx.x + blockDim.x * threadIdx.y;
  int& cell = cells[kRow * blockIdx.x + thread];
  cell = mixed(cell, static_cast<int>(blockDim.x), static_cast<int>(blockDim.y));
}
__global__ void mark(int* cells) { mix_own_cell(cells); }

// A launch in blocks of no or of too many threads is refused.
extern "C" __global__ void in_bounds(int* cells, int limit, int depth) {
  mix_own_cell(cells);
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0 || depth == 0) return;
  mark<<<2, blockDim.x / 3>>>(cells);
  mark<<<1, min(static_cast<int>(blockDim.x), limit)>>>(cells);
  mark<<<2, blockDim.x & 13>>>(cells);
  const unsigned int less = blockDim.x >> depth;
  mark<<<1, less>>>(cells);
  mark<<<1, 40>>>(cells);
  in_bounds<<<1, dim3(blockDim.x, min(blockDim.y, 2u))>>>(cells, limit - 6, depth - 1);
  mark<<<1, blockDim.x>>>(cells);
}

// A block may be larger than its launcher's in one direction, and each level is larger than the one before.
extern "C" __global__ void across_axes(int* cells, int depth) {
  mix_own_cell(cells);
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0 || depth == 0) return;
  mark<<<2, dim3(blockDim.y, 2 * blockDim.x)>>>(cells);
  across_axes<<<1, dim3(blockDim.y, blockDim.x + 1)>>>(cells, depth - 1);
  mark<<<1, dim3(blockDim.x, blockDim.y)>>>(cells);
}

#else

namespace {

using klap::differential::Builder;
using Cells = std::vector<int>;

void mix(Cells& cells, int blocks, int x, int y = 1) {
  if (x <= 0) return;
  for (int block = 0; block < blocks; ++block) {
    for (int thread = 0; thread < x * y; ++thread) {
      int& cell = cells[static_cast<size_t>(kRow * block + thread)];
      cell = mixed(cell, x, y);
    }
  }
}

void mix_in_bounds(Cells& cells, int x, int y, int limit, int depth) {
  mix(cells, 1, x, y);
  if (depth == 0) return;
  mix(cells, 2, x / 3);
  mix(cells, 1, std::min(x, limit));
  mix(cells, 2, x & 13);
  mix(cells, 1, x >> depth);
  mix(cells, 1, 40);
  mix_in_bounds(cells, x, std::min(y, 2), limit - 6, depth - 1);
  mix(cells, 1, x);
}

void mix_across_axes(Cells& cells, int x, int y, int depth) {
  mix(cells, 1, x, y);
  if (depth == 0) return;
  mix(cells, 2, y, 2 * x);
  mix_across_axes(cells, y, x + 1, depth - 1);
  mix(cells, 1, x, y);
}

Cells first_cells() {
  Cells cells;
  for (int i = 0; i < 2 * kRow; ++i) cells.push_back(i * 37 % 101);
  return cells;
}

}  // namespace

KLAP_CASE(executed_in_bounds, "the executor has fewer threads than a block of the recursion") {
  Cells cells = first_cells();
  const Cells before = cells;
  mix_in_bounds(cells, 12, 3, 9, 3);
  mix_in_bounds(cells, 96, 1, 50, 3);
  mix_in_bounds(cells, 1, 1, 1, 2);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("in_bounds", {1, 1, 1}, {12, 3, 1}, c.address(of_cells), 9, 3);
  c.launch("in_bounds", {1, 1, 1}, {96, 1, 1}, c.address(of_cells), 50, 3);
  c.launch("in_bounds", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), 1, 2);
  c.left_on_device("in_bounds", "child-launches");
  c.by_warp("some");
}

KLAP_CASE(executed_across_axes, "an extent is taken to be bounded by another one of its launcher") {
  Cells cells = first_cells();
  const Cells before = cells;
  mix_across_axes(cells, 2, 3, 4);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("across_axes", {1, 1, 1}, {2, 3, 1}, c.address(of_cells), 4);
  c.left_on_device("across_axes", "child-launches");
  c.by_warp("some");
}

#endif
