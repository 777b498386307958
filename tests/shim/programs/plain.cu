// Device code without launches, built with and without relocatable code.
extern "C" __global__ void child(int* out, int begin, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[begin + i] += 1;
}

extern "C" __global__ void parent(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += n;
}
