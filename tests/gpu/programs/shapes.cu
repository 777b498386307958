// Children of every shape: grids and blocks in three dimensions, computed grid sizes, blocks that do not fill
// their warps, blocks of one thread and of the largest size. One child kernel serves five launch sites whose
// constant block sizes differ.
//
// Every child thread adds a number made from its complete position (block, thread, grid and block dimensions)
// to a cell of its own, so a thread that runs twice, never, or under a wrong index shows. Built a second time
// with
// --default-stream per-thread.
#include "program.h"

using Cell = unsigned long long;

constexpr int kParents = 200;

__host__ __device__ Cell fingerprint(dim3 grid, dim3 block, dim3 block_index, dim3 thread, int tag) {
  const unsigned parts[] = {grid.x,        grid.y,        grid.z,        block.x,  block.y,  block.z,
                            block_index.x, block_index.y, block_index.z, thread.x, thread.y, thread.z};
  Cell sum = static_cast<Cell>(tag) + 1;
  for (const unsigned part : parts) sum = sum * 1000003ULL + part;
  return sum;
}

__host__ __device__ size_t position(dim3 grid, dim3 block, dim3 block_index, dim3 thread) {
  const size_t b = (static_cast<size_t>(block_index.z) * grid.y + block_index.y) * grid.x + block_index.x;
  const size_t t = (static_cast<size_t>(thread.z) * block.y + thread.y) * block.x + thread.x;
  return b * block.x * block.y * block.z + t;
}

__global__ void sign(Cell* cells, int tag) {
  const dim3 index(blockIdx.x, blockIdx.y, blockIdx.z);
  const dim3 thread(threadIdx.x, threadIdx.y, threadIdx.z);
  atomicAdd(&cells[position(gridDim, blockDim, index, thread)],
            fingerprint(gridDim, blockDim, index, thread, tag));
}

// The five shapes: the grid that parent thread t launches, and the block of each site.
__host__ __device__ dim3 flat_grid(int t) { return dim3(2, 3, t % 3 + 1); }
__host__ __device__ dim3 odd_grid(int t) { return dim3(t % 17 + 1); }
__host__ __device__ dim3 any_grid(int t) { return dim3(t % 4 + 1, t % 5 + 1, t % 3 + 1); }
__host__ __device__ dim3 large_grid(int t) { return dim3(t % 2 + 1, 2); }
__host__ __device__ dim3 line_grid(int t) { return dim3(t + 1); }

__global__ void launch_flat(Cell* cells, const size_t* first) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  sign<<<flat_grid(t), dim3(8, 2, 3)>>>(cells + first[t], t);
}

__global__ void launch_odd(Cell* cells, const size_t* first) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  sign<<<odd_grid(t), dim3(7, 5)>>>(cells + first[t], t);
}

__global__ void launch_any(Cell* cells, const size_t* first) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  sign<<<any_grid(t), dim3(4, 4, 4)>>>(cells + first[t], t);
}

__global__ void launch_large(Cell* cells, const size_t* first) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  sign<<<large_grid(t), dim3(32, 8, 4)>>>(cells + first[t], t);
}

__global__ void launch_line(Cell* cells, const size_t* first) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  sign<<<line_grid(t), 1>>>(cells + first[t], t);
}

namespace {

size_t volume(dim3 d) { return static_cast<size_t>(d.x) * d.y * d.z; }

void fill_expected(Cell* cells, dim3 grid, dim3 block, int tag) {
  for (size_t b = 0; b < volume(grid); ++b) {
    const dim3 index(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
    for (size_t t = 0; t < volume(block); ++t) {
      const dim3 thread(t % block.x, t / block.x % block.y, t / block.x / block.y);
      cells[position(grid, block, index, thread)] = fingerprint(grid, block, index, thread, tag);
    }
  }
}

using Parent = void (*)(Cell*, const size_t*);

void run(gpu::Report& report, const char* what, Parent parent, dim3 (*grid_of)(int), dim3 block) {
  std::vector<size_t> first;
  size_t cells = 0;
  for (int t = 0; t < kParents; ++t) {
    first.push_back(cells);
    cells += volume(grid_of(t)) * volume(block);
  }
  std::vector<Cell> expected(cells);
  for (int t = 0; t < kParents; ++t) fill_expected(&expected[first[t]], grid_of(t), block, t);
  const gpu::Buffer<Cell> out(cells);
  const gpu::Buffer<size_t> offsets(first);
  parent<<<(kParents + 95) / 96, 96>>>(out.data(), offsets.data());
  gpu::wait(what);
  report.expect_equal(what, out.to_host(), expected);
}

}  // namespace

int main() {
  gpu::Report report("shapes");
  run(report, "blocks of 8x2x3", launch_flat, flat_grid, dim3(8, 2, 3));
  run(report, "blocks of 7x5", launch_odd, odd_grid, dim3(7, 5));
  run(report, "computed three-dimensional grids", launch_any, any_grid, dim3(4, 4, 4));
  run(report, "blocks of 1024", launch_large, large_grid, dim3(32, 8, 4));
  run(report, "blocks of one thread", launch_line, line_grid, dim3(1));
  return report.finish();
}
