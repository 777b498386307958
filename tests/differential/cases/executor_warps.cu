// One thread launches kernels whose lanes work together, each in blocks of several sizes. If all of these are
// full warps, the executor runs them by the size in each record. Only then has each lane its neighbours.
#include "case.h"

constexpr int kCells = 192;
KLAP_SHARED static constexpr int kept(int value) { return value & 0xffff; }

#ifdef __CUDACC__

__device__ static int own_thread() { return static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y); }
__device__ static int block_threads() { return static_cast<int>(blockDim.x * blockDim.y); }

// Each cell gets the sum of its block's cells up to it, and the block's width.
__global__ void add_up(int* cells) {
  __shared__ int sums[32];
  const int thread = own_thread(), lane = thread % 32;
  int& cell = cells[block_threads() * static_cast<int>(blockIdx.x) + thread];
  int sum = cell;
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) sums[thread / 32] = sum;
  __syncthreads();
  for (int warp = 0; warp < thread / 32; ++warp) sum += sums[warp];
  cell = kept(sum + static_cast<int>(blockDim.x));
}

// Each cell is exchanged with the one opposite in its warp, and those that are odd in it are counted.
__global__ void turn_warps(int* cells) {
  int& cell = cells[block_threads() * static_cast<int>(blockIdx.x) + own_thread()];
  const int odd = __popc(__ballot_sync(~0u, cell % 2 != 0));
  cell = kept(__shfl_xor_sync(~0u, cell, 31) + odd);
}

extern "C" __global__ void meet_in_warps(int* cells, int rows) {
  for (int step = 0; step < 3; ++step) {
    add_up<<<2, 96>>>(cells);
    turn_warps<<<1, 64>>>(cells);
    add_up<<<3, dim3(16, 4)>>>(cells);
    turn_warps<<<2, dim3(32, rows)>>>(cells);
    add_up<<<1, 32>>>(cells);
    turn_warps<<<1, dim3(rows, 32)>>>(cells);
    const int enough = (11 * rows + 31) / 32 * 32;
    add_up<<<1, enough>>>(cells);
    turn_warps<<<1, min(enough, 96 * rows)>>>(cells);
  }
}

// The last warp of some blocks is not full.
__global__ void turn_some(int* cells) {
  __shared__ int others[64];
  const int thread = own_thread();
  others[thread ^ 1] = cells[thread];
  __syncwarp();
  cells[thread] = kept(3 * others[thread] + block_threads());
}
extern "C" __global__ void meet_in_some_lanes(int* cells, int rows) {
  for (int step = 0; step < 3; ++step) {
    turn_some<<<1, 32>>>(cells);
    turn_some<<<1, dim3(8, rows)>>>(cells);
  }
}

#else

namespace {

using klap::differential::Builder;
using Cells = std::vector<int>;

void add_blocks(Cells& cells, int blocks, int width, int rows = 1) {
  for (int block = 0; block < blocks; ++block) {
    int sum = 0;
    for (int thread = 0; thread < width * rows; ++thread) {
      int& cell = cells[static_cast<size_t>(block * width * rows + thread)];
      sum += cell;
      cell = kept(sum + width);
    }
  }
}

void turn(Cells& cells, int warps) {
  for (int warp = 0; warp < warps; ++warp) {
    const auto first = cells.begin() + 32 * warp, last = first + 32;
    const auto odd = static_cast<int>(std::count_if(first, last, [](int cell) { return cell % 2 != 0; }));
    std::reverse(first, last);
    std::for_each(first, last, [odd](int& cell) { cell = kept(cell + odd); });
  }
}

void turn_pairs(Cells& cells, int threads) {
  for (int thread = 0; thread < threads; thread += 2) {
    int &one = cells[static_cast<size_t>(thread)], &other = cells[static_cast<size_t>(thread + 1)];
    const int before = other;
    other = kept(3 * one + threads);
    one = kept(3 * before + threads);
  }
}

Cells first_cells() {
  Cells cells;
  for (int i = 0; i < kCells; ++i) cells.push_back(i * 37 % 101);
  return cells;
}

}  // namespace

KLAP_CASE(executed_full_warps, "lanes of a child lack neighbours, or have some of another block") {
  Cells cells = first_cells();
  const Cells before = cells;
  constexpr int kRows = 3;
  for (int step = 0; step < 3; ++step) {
    add_blocks(cells, 2, 96);
    turn(cells, 2);
    add_blocks(cells, 3, 16, 4);
    turn(cells, 2 * kRows);
    add_blocks(cells, 1, 32);
    turn(cells, kRows);
    constexpr int kEnough = 64;  // for 33 threads
    add_blocks(cells, 1, kEnough);
    turn(cells, kEnough / 32);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("meet_in_warps", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), kRows);
  c.rewritten("meet_in_warps");
  c.by_warp("rewritten");
}

KLAP_CASE(executed_some_lanes, "lanes that a child's block does not have are waited for") {
  Cells cells = first_cells();
  const Cells before = cells;
  for (int step = 0; step < 3; ++step) {
    turn_pairs(cells, 32);
    turn_pairs(cells, 40);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("meet_in_some_lanes", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), 5);
  c.left_on_host("meet_in_some_lanes", "block-not-constant");
  c.by_warp("rewritten");
}

#endif
