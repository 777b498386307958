// Unit A of two_units: its static kernels and static variable have the same names as the other unit's.
#include "program.h"
#include "two_units.h"

__device__ int shared_bias = 3;

static __device__ int counter;

static __global__ void fill(int* cells, int t) {
  const int i = threadIdx.x;
  if (i < kCells) cells[i] = 1000 + t + shared_bias;
  if (i == 0) atomicAdd(&counter, t);
}

static __global__ void launch_fill(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) fill<<<1, 64>>>(cells + t * kCells, t);
}

static __global__ void launch_scale(double* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) scale<double><<<2, 32>>>(cells + t * kCells, kCells, t + 1);
}

void run_unit_a(double* scaled, int* filled, int* count) {
  launch_scale<<<5, 32>>>(scaled);
  launch_fill<<<5, 32>>>(filled);
  gpu::wait("unit a");
  gpu::check(cudaMemcpyFromSymbol(count, counter, sizeof *count), "reading the counter of unit a");
}

static __global__ void set_triple(int* cell, int t) {
  if (threadIdx.x == 0) *cell = triple(t);
}

static __global__ void launch_calls(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) set_triple<<<1, 32>>>(cells + t, t);
}

void run_calls(int* cells) {
  launch_calls<<<5, 32>>>(cells);
  gpu::wait("a child that calls into the other unit");
}
