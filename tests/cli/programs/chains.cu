// Kernels of one block that launch themselves, for what settings make of them.

// All that a link needs is its number.
__global__ void chain(int* cells, int links) {
  const int value = cells[links * 64 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0 && links > 0) chain<<<1, 64>>>(cells, links - 1);
  cells[links * 64 + threadIdx.x] = 2 * value;
}

// What a link reads first may be what the one before wrote before its launch.
__global__ void writing_chain(int* cells, int links) {
  const int value = cells[links * 64 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    cells[-1 - links] = value;
    if (links > 0) writing_chain<<<1, 64>>>(cells, links - 1);
  }
  cells[links * 64 + threadIdx.x] = 2 * value;
}
