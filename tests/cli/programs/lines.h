// A function and a macro that launch, for lines.cu.
#pragma once

#define LAUNCH_BY_MACRO(cells, count) mark<<<(count) + 1, 32>>>(cells, count)

__global__ void mark(int* cells, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] = 1;
}

__device__ __forceinline__ void launch_from_header(int* cells, int count) {
  mark<<<count + 1, 32>>>(cells, count);  // in a header
}
