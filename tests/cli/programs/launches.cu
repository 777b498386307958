// Two launch sites for the tests of klap-ptx: one that can be aggregated and one that is left over the grid,
// because the kernel waits for something that its children may do.
__global__ void child(int* sums, int value) { atomicAdd(sums + blockIdx.x, value + threadIdx.x); }

__global__ void parent(int* sums, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) child<<<i % 7 + 1, 32>>>(sums, i);
}

__global__ void looping_parent(int* sums, int count) {
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    child<<<1, count, count>>>(sums, i);
    while (atomicAdd(sums, 0) == i) {
    }
  }
}
