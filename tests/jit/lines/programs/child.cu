// A child in a unit of its own, with a function that is called and one that is inlined.
#include "work.h"

__device__ __noinline__ int rounds(int v) {
  int s = 0;
  for (int i = 0; i < v; ++i) s += i * s + 1;  // called
  return s;
}

__global__ void child(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out + i, scaled(out, i) + rounds(n));  // child
}
