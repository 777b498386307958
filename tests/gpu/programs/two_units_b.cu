// Unit B of two_units: its static kernels and static variable have the same names as the other unit's.
#include "program.h"
#include "two_units.h"

static __device__ int counter;

__device__ int triple(int value) { return 3 * value; }

static __global__ void fill(int* cells, int t) {
  const int i = threadIdx.x;
  if (i < kCells) cells[i] = -t - shared_bias;
  if (i == 0) atomicAdd(&counter, t);
}

static __global__ void launch_fill(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) fill<<<1, 64>>>(cells + t * kCells, t);
}

static __global__ void launch_scale(double* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) scale<double><<<2, 32>>>(cells + t * kCells, kCells, 2 * t + 1);
}

void run_unit_b(double* scaled, int* filled, int* count) {
  launch_scale<<<5, 32>>>(scaled);
  launch_fill<<<5, 32>>>(filled);
  gpu::wait("unit b");
  gpu::check(cudaMemcpyFromSymbol(count, counter, sizeof *count), "reading the counter of unit b");
}
