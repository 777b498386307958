// Launches a child of the other unit and one of its own.
#include "work.h"

__global__ void child(int* out, int n);

__global__ void near_child(int* out, int n) {
  if (threadIdx.x < n) atomicAdd(out + threadIdx.x, scaled(out, n));  // near child
}

__global__ void parent(int* out, const int* n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int k = scaled(out, n[i]);                              // before
  if (k > 0) child<<<(n[i] + 31) / 32, 32>>>(out, n[i]);  // launch
  out[i] = k;                                             // after
}

__global__ void near_parent(int* out, const int* n) {
  int k = scaled(out, n[threadIdx.x]);
  if (k > 0) near_child<<<k, 32>>>(out, k);  // near launch
}

int main() {
  parent<<<1, 1>>>(nullptr, nullptr);
  near_parent<<<1, 1>>>(nullptr, nullptr);
  return 0;
}
