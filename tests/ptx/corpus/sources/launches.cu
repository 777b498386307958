// Kernels that launch kernels: shapes and streams of every kind.

// options: -rdc=true
// since: 12.0
__global__ void child(int* data, int n, char tag) { data[n] = tag; }
struct Big {
  double values[6];
};
__global__ void big_child(Big big, int* data) { data[0] = (int)big.values[threadIdx.x % 6]; }
__global__ void parent(int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) child<<<data[i], 64>>>(data, i, 'a');
  if (data[i] == 3) child<<<1, dim3(8, 8), 128, cudaStreamFireAndForget>>>(data, n, 'b');
  if (i == 0) child<<<dim3(n, 2), 32, 0, cudaStreamTailLaunch>>>(data, n, 'c');
}
__global__ void with_streams(int* data, int n) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Big big = {{1, 2, 3, 4, 5, (double)n}};
  for (int i = 0; i < n; ++i) big_child<<<i + 1, 32, 0, stream>>>(big, data);
  if (cudaGetLastError() != cudaSuccess) data[0] = -1;
}
__global__ void recursive(int* data, int depth) {
  data[depth] += 1;
  if (depth > 0 && threadIdx.x == 0) recursive<<<1, blockDim.x>>>(data, depth - 1);
}
