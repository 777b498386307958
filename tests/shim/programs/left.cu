// A parent outside the allow-list: its child waits for another block.
extern "C" __global__ void child(int* out, int begin, int count) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = count;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  while (atomicAdd(out, 0) < begin) {
  }
  out[begin + threadIdx.x] += sum;
}

extern "C" __global__ void parent(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) child<<<(n + 31) / 32, 32>>>(out, i, n);
}
