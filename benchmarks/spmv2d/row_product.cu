// The child kernel of the sparse matrix-vector program, in a unit of its own with the variables it uses.
#include "../common/cuda_check.h"
#include "row_product.h"

__constant__ double scale_factor;
static __device__ unsigned blocks_run;

__global__ void row_product(RowWork row) {
  const unsigned threads_in_block = blockDim.x * blockDim.y;
  const unsigned lane = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  const int stride = static_cast<int>(gridDim.x * gridDim.y * threads_in_block);
  double sum = 0;
  for (int e = row.begin + static_cast<int>(block * threads_in_block + lane); e < row.end; e += stride) {
    sum += static_cast<double>(row.values[e]) * row.x[row.columns[e]];
  }
  atomicAdd(row.y, sum * row.weight * scale_factor);
  if (lane == 0) atomicAdd(&blocks_run, 1U);
}

void set_scale(double scale) {
  bench::check(cudaMemcpyToSymbol(scale_factor, &scale, sizeof scale), "setting the scale");
}

void reset_row_blocks() {
  const unsigned zero = 0;
  bench::check(cudaMemcpyToSymbol(blocks_run, &zero, sizeof zero), "resetting the block counter");
}

unsigned row_blocks() {
  unsigned count = 0;
  bench::check(cudaMemcpyFromSymbol(&count, blocks_run, sizeof count), "reading the block counter");
  return count;
}
