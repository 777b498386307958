// Children whose threads share memory, for compute-sanitizer's racecheck: one block after another in the same
// threads of every kind of consumer, so a barrier that is missing between two of them is a hazard. All
// launches are those that the host runs behind the parent, since racecheck takes no module with device-side
// launches (KLAP_DEVICE_RUNTIME=0 leaves them out).
#include "program.h"

constexpr int kBlock = 64;
constexpr int kWarp = 32;
constexpr int kTiles = 3;
constexpr int kBlocks = 5;  // of a child: more children's blocks than fit a small device at once
constexpr int kParents = 96;
constexpr int kCells = kParents * kBlocks * kBlock;
constexpr int kRounds = 4;
constexpr int kLevels = 6;
constexpr int kNodes = (1 << (kLevels + 1)) - 1;

// What a block makes of tile `tile` of its cells: the sum of all, and what stands opposite.
__host__ __device__ constexpr int value(int cell, int tile) { return (cell * 7 + tile * 5) % 101; }

// Several tiles a block: no barrier behind the last one.
__global__ void tiles(int* cells, int first) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  const int own = first + static_cast<int>(blockIdx.x) * kBlock;
  int result = 0;
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile != 0) __syncthreads();
    held[thread] = value(own + thread, tile);
    __syncthreads();
    result += held[kBlock - 1 - thread] - held[(thread + 1) % kBlock];
  }
  cells[own + thread] = result;
}
__global__ void tiles_parent(int* cells) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tiles<<<kBlocks, kBlock>>>(cells, at * kBlocks * kBlock);
}

// Dynamic shared memory; the warps of one block work by themselves first.
__global__ void warp_sums(int* cells, int first) {
  extern __shared__ int sums[];
  const int thread = static_cast<int>(threadIdx.x);
  const int own = first + static_cast<int>(blockIdx.x) * kBlock;
  int sum = value(own + thread, 0);
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  if (thread % kWarp == 0) sums[thread / kWarp] = sum;
  __syncthreads();
  cells[own + thread] = sums[1 - thread / kWarp];
}
__global__ void warp_sums_parent(int* cells) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  warp_sums<<<kBlocks, kBlock, kBlock / kWarp * sizeof(int)>>>(cells, at * kBlocks * kBlock);
}

// The second warp leaves while the first has still to meet.
__global__ void fewer_warps(int* cells, int first) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp;
  const int own = first + static_cast<int>(blockIdx.x) * kBlock;
  int result = value(own + thread, 0);
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    held[thread] = result;
    __syncthreads();
    result = (result * 3 + held[(thread + kWarp) % kBlock]) % 1000;
    __syncthreads();
    if (round == 2 - warp) {
      cells[own + thread] = -result;
      return;
    }
  }
  cells[own + thread] = result;
}
__global__ void fewer_warps_parent(int* cells) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  fewer_warps<<<kBlocks, kBlock>>>(cells, at * kBlocks * kBlock);
}

// Blocks of one warp, several of which share a block of the consumer: variables of several sizes, one of
// which is changed by its generic address, one after another in a loop of barriers.
__global__ void one_warp(int* cells, int first) {
  __shared__ short small[kWarp + 1];
  __shared__ double wide[kWarp];
  __shared__ int sum;
  const int thread = static_cast<int>(threadIdx.x);
  const int own = first + static_cast<int>(blockIdx.x) * kWarp;
  small[thread] = static_cast<short>(value(own + thread, 0));
  wide[thread] = value(own + thread, 1);
  if (thread == 0) sum = own % 50;
  __syncthreads();
  int* const total = &sum;
  atomicAdd(total, small[kWarp - 1 - thread]);
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    const double other = wide[(thread + 1) % kWarp];
    __syncthreads();
    wide[thread] += other;
    __syncthreads();
  }
  cells[own + thread] = sum + static_cast<int>(wide[kWarp - 1 - thread]);
}
__global__ void one_warp_parent(int* cells) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  one_warp<<<kBlocks, kWarp>>>(cells, at * kBlocks * kWarp);
}

// A tree of blocks that launch the next level: the consumer that feeds itself.
__global__ void grow(int* nodes, int first, int level) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x), self = first + static_cast<int>(blockIdx.x);
  held[thread] = value(self, thread);
  __syncthreads();
  nodes[self * kBlock + thread] = held[kBlock - 1 - thread] + level;
  if (thread == 0 && level < kLevels) grow<<<2, kBlock>>>(nodes, 2 * self + 1, level + 1);
}

// Launches in a loop: the consumers whose records wait for those before.
__global__ void mix(const int* __restrict__ from, int* __restrict__ to, int round) {
  __shared__ int held[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  const int own = static_cast<int>(blockIdx.x) * kBlock + thread;
  held[thread] = from[own];
  __syncthreads();
  to[own] = (held[kBlock - 1 - thread] * 2 + round + thread) % 1000;
}
__global__ void mix_parent(int* cells, int rounds) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int* own = cells + at * kBlocks * kBlock;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round, own += kCells)
    mix<<<kBlocks, kBlock>>>(own, own + kCells, round);
}
__global__ void each_tile_parent(int* cells, int children) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
#pragma unroll 1
  for (int child = 0; child < children; ++child)
    tiles<<<1, kBlock, 0, cudaStreamFireAndForget>>>(cells, (at * children + child) * kBlock);
}

int mirrored(int cell) { return cell / kBlock * kBlock + kBlock - 1 - cell % kBlock; }
int next_in_block(int cell, int by) { return cell / kBlock * kBlock + (cell + by) % kBlock; }

std::vector<int> expected_tiles(int cells) {
  std::vector<int> out(cells);
  for (int cell = 0; cell < cells; ++cell) {
    for (int tile = 0; tile < kTiles; ++tile)
      out[cell] += value(mirrored(cell), tile) - value(next_in_block(cell, 1), tile);
  }
  return out;
}
std::vector<int> expected_warp_sums() {
  std::vector<int> out(kCells);
  for (int cell = 0; cell < kCells; ++cell) {
    const int other = next_in_block(cell, kWarp) / kWarp * kWarp;
    for (int lane = 0; lane < kWarp; ++lane) out[cell] += value(other + lane, 0);
  }
  return out;
}
std::vector<int> expected_fewer_warps() {
  std::vector<int> now(kCells), out(kCells), held(kCells);
  for (int cell = 0; cell < kCells; ++cell) now[cell] = value(cell, 0);
  for (int round = 0; round < kRounds; ++round) {
    const auto is_there = [round](int cell) { return round <= 2 - cell % kBlock / kWarp; };
    for (int cell = 0; cell < kCells; ++cell)
      if (is_there(cell)) held[cell] = now[cell];
    for (int cell = 0; cell < kCells; ++cell) {
      if (!is_there(cell)) continue;
      now[cell] = (now[cell] * 3 + held[next_in_block(cell, kWarp)]) % 1000;
      out[cell] = -now[cell];
    }
  }
  return out;
}
std::vector<int> expected_one_warp() {
  std::vector<int> out(kParents * kBlocks * kWarp);
  for (int own = 0; own < static_cast<int>(out.size()); own += kWarp) {
    int sum = own % 50;
    std::vector<int> wide(kWarp);
    for (int lane = 0; lane < kWarp; ++lane) sum += value(own + lane, 0);
    for (int lane = 0; lane < kWarp; ++lane) wide[lane] = value(own + lane, 1);
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<int> before = wide;
      for (int lane = 0; lane < kWarp; ++lane) wide[lane] += before[(lane + 1) % kWarp];
    }
    for (int lane = 0; lane < kWarp; ++lane) out[own + lane] = sum + wide[kWarp - 1 - lane];
  }
  return out;
}
std::vector<int> expected_nodes() {
  std::vector<int> out(kNodes * kBlock);
  for (int node = 0; node < kNodes; ++node) {
    int level = 0;
    while ((2 << level) - 1 <= node) ++level;
    for (int thread = 0; thread < kBlock; ++thread)
      out[node * kBlock + thread] = value(node, kBlock - 1 - thread) + level;
  }
  return out;
}
std::vector<int> expected_mix() {
  std::vector<int> out((kRounds + 1) * kCells);
  for (int round = 0; round < kRounds; ++round) {
    const int* const from = &out[round * kCells];
    for (int cell = 0; cell < kCells; ++cell)
      out[(round + 1) * kCells + cell] = (from[mirrored(cell)] * 2 + round + cell % kBlock) % 1000;
  }
  return out;
}

int main() {
  gpu::Report report("shared_memory");
  gpu::Buffer<int> tile_cells(kCells), sums(kCells), fewer(kCells), nodes(kNodes * kBlock);
  gpu::Buffer<int> warps(kParents * kBlocks * kWarp);
  gpu::Buffer<int> mixed((kRounds + 1) * kCells), each(kCells);
  tiles_parent<<<3, kParents / 3>>>(tile_cells.data());
  warp_sums_parent<<<3, kParents / 3>>>(sums.data());
  fewer_warps_parent<<<3, kParents / 3>>>(fewer.data());
  one_warp_parent<<<3, kParents / 3>>>(warps.data());
  grow<<<1, kBlock>>>(nodes.data(), 0, 0);
  mix_parent<<<3, kParents / 3>>>(mixed.data(), kRounds);
  each_tile_parent<<<3, kParents / 3>>>(each.data(), kBlocks);
  gpu::wait("all kernels");
  report.expect_equal("tiles", tile_cells.to_host(), expected_tiles(kCells));
  report.expect_equal("warp sums", sums.to_host(), expected_warp_sums());
  report.expect_equal("fewer warps", fewer.to_host(), expected_fewer_warps());
  report.expect_equal("one warp", warps.to_host(), expected_one_warp());
  report.expect_equal("nodes", nodes.to_host(), expected_nodes());
  report.expect_equal("mixed", mixed.to_host(), expected_mix());
  report.expect_equal("each tile", each.to_host(), expected_tiles(kCells));
  return report.finish();
}
