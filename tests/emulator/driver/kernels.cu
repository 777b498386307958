// Kernels for the tests of the emulated driver, compiled to PTX, fatbins, machine code and an object file.
#include <cstdio>

__device__ int counter = 5;
__constant__ int table[4] = {10, 20, 30, 40};
__device__ __managed__ int shared_with_host = 3;

extern "C" __global__ void add(int* out, const int* a, const int* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

extern "C" __global__ void scale(int* data, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

extern "C" __global__ void count(int* out) {
  out[0] = atomicAdd(&counter, 1);
  out[1] = table[threadIdx.x + 1];
}

extern "C" __global__ void reverse(int* data) {
  extern __shared__ int room[];
  room[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void child(int* out, int where) { atomicAdd(&out[where], threadIdx.x + 1); }

extern "C" __global__ void parent(int* out) { child<<<1, 32>>>(out, threadIdx.x); }

extern "C" __global__ void __launch_bounds__(64) bounded(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void store_at(int* where) { *where = 1; }

// Every thread of both blocks stores another value at the same place.
extern "C" __global__ void race(int* out) { *out = blockIdx.x; }

extern "C" __global__ void speak(int value) { printf("the value is %d\n", value); }
