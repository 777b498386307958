// Launches whose lines klap-ptx must find. The comment at the end of a line is its name in the test.
#include "lines.h"

struct Level {
  int* cells;
  int sizes[4], count;
};

template <typename Cells, typename Count>
__global__ void mark_level(Cells level, Count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < level.count) level.cells[i] = 1;
}

__device__ __forceinline__ void launch_inlined(int* cells, int count) {
  mark<<<count + 2, 32>>>(cells, count);  // in a function
}

__device__ __forceinline__ void launch_twice_inlined(int* cells, int count) {
  launch_inlined(cells + 1, count);
}

__global__ void plain_parent(int* cells, const int* counts) {
  mark<<<counts[threadIdx.x], 32>>>(cells, counts[threadIdx.x]);  // in the kernel
}

__global__ void inlining_parent(int* cells, const int* counts) {
  launch_twice_inlined(cells, counts[threadIdx.x]);
}

__global__ void header_parent(int* cells, const int* counts) {
  launch_from_header(cells, counts[threadIdx.x]);
}

__global__ void macro_parent(int* cells, const int* counts) {
  LAUNCH_BY_MACRO(cells, counts[threadIdx.x]);  // by a macro
}

__global__ void level_parent(Level level) {
  mark_level<<<level.sizes[threadIdx.x & 3], 32>>>(level, 1L);  // of a structure
}

__global__ void waiting_parent(int* cells) {
  mark<<<1, 32>>>(cells, 32);         // that is left
  while (atomicAdd(cells, 0) == 0) {  // waits
  }
}
