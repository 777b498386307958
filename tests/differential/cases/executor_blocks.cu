// One thread launches a sequence of kernels whose blocks have barriers and are of different sizes, as a
// factorisation by blocks does: the diagonal, the panels, the rest. Or their variables in shared memory are
// too much for one block together. Only the executor can run them in one consumer.
#include "case.h"

constexpr int kCells = 240;
KLAP_SHARED static constexpr int mixed(int value, int other) { return (value * 5 + other + 1) & 0xffff; }

#ifdef __CUDACC__

// Each thread mixes its cell with that of the thread opposite, as often as there are rounds.
__device__ static void mix_block(int* cells, int* shared, int rounds) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  cells += threads * static_cast<int>(blockIdx.x);
  shared[thread] = cells[thread];
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int value = mixed(shared[thread], shared[threads - 1 - thread]);
    __syncthreads();
    shared[thread] = value;
  }
  cells[thread] = shared[thread];
}
__global__ void mix_all(int* cells, int rounds) {
  __shared__ int shared[kCells];
  mix_block(cells, shared, rounds);
}
__global__ void mix_panels(int* cells, int rounds) {
  __shared__ int shared[80];
  mix_block(cells, shared, rounds);
}
__global__ void mix_warps(int* cells, int rounds) {
  __shared__ int shared[32];
  mix_block(cells, shared, rounds);
}
extern "C" __global__ void factorise(int* cells, int steps) {
  for (int step = 0; step < steps; ++step) {
    mix_warps<<<7, 32>>>(cells, 2);
    mix_panels<<<3, 80>>>(cells, 1);
    mix_all<<<1, kCells>>>(cells, 3);
  }
}

// Each kernel has more than half of what a block may have.
__global__ void turn_far(int* cells) {
  __shared__ int far[7000];
  const int at = static_cast<int>(threadIdx.x) * 100;
  far[at] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = mixed(far[(blockDim.x - 1) * 100 - at], at);
}
__global__ void turn_near(int* cells) {
  __shared__ int near[2][3600];
  near[1][threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = mixed(near[1][blockDim.x - 1 - threadIdx.x], 7);
}
extern "C" __global__ void turn_often(int* cells, int steps) {
  for (int step = 0; step < steps; ++step) {
    turn_far<<<1, 64>>>(cells);
    turn_near<<<1, 64>>>(cells);
  }
}

#else

namespace {

using klap::differential::Builder;

void mix(std::vector<int>& cells, int blocks, int threads, int rounds) {
  for (int block = 0; block < blocks; ++block) {
    const auto at = [&](int i) -> int& { return cells[static_cast<size_t>(block * threads + i)]; };
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> before = cells;
      for (int i = 0; i < threads; ++i)
        at(i) = mixed(at(i), before[static_cast<size_t>(block * threads + threads - 1 - i)]);
    }
  }
}

void turn(std::vector<int>& cells, int stride, int other) {
  const std::vector<int> before = cells;
  const int last = static_cast<int>(cells.size()) - 1;
  for (int i = 0; i <= last; ++i)
    cells[static_cast<size_t>(i)] = mixed(before[static_cast<size_t>(last - i)], i * stride + other);
}

std::vector<int> numbered(int n) {
  std::vector<int> cells;
  for (int i = 0; i < n; ++i) cells.push_back(i * 37 % 101);
  return cells;
}

void executed(Builder& c, const char* parent, const char* on_device) {
  c.left_on_device(parent, on_device);
  c.by_warp("rewritten");
}

}  // namespace

KLAP_CASE(executed_other_blocks, "a barrier counts other threads than those of the child's block") {
  std::vector<int> cells = numbered(kCells);
  const std::vector<int> before = cells;
  for (int step = 0; step < 4; ++step) {
    mix(cells, 7, 32, 2);
    mix(cells, 3, 80, 1);
    mix(cells, 1, kCells, 3);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("factorise", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), 4);
  executed(c, "factorise", "child-barrier");
}

KLAP_CASE(executed_shared_of_all, "kernels of one consumer have each other's variables") {
  std::vector<int> cells = numbered(64);
  const std::vector<int> before = cells;
  for (int step = 0; step < 3; ++step) {
    turn(cells, 100, 0);
    turn(cells, 0, 7);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("turn_often", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), 3);
  executed(c, "turn_often", "child-shared-memory");
}

#endif
