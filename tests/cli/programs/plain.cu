// A program without relocatable device code: it cannot hold device-side launches.
__global__ void clear(int* sums) { sums[threadIdx.x] = 0; }

int main() {
  int* sums = nullptr;
  if (cudaMalloc(&sums, 32 * sizeof(int)) != cudaSuccess) return 1;
  clear<<<1, 32>>>(sums);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
