// Shared by the two units of two_units: a template child that both of them launch, and each unit's entry
// point.
#pragma once

template <class T>
__global__ void scale(T* cells, int count, T factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] = cells[i] * factor + factor;
}

// A variable that one unit defines and the children of both use.
extern __device__ int shared_bias;

// A function of unit b that a child of unit a calls.
__device__ int triple(int value);

constexpr int kParents = 160;
constexpr int kCells = 40;  // of each parent thread

void run_unit_a(double* scaled, int* filled, int* counter);
void run_calls(int* cells);
void run_unit_b(double* scaled, int* filled, int* counter);
