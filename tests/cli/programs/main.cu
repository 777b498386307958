// A second unit, without launches, and the host's side. The tests take this program apart; they never run it.
__global__ void parent(int* sums, int count);
__global__ void looping_parent(int* sums, int count);

__global__ void clear(int* sums) { sums[threadIdx.x] = 0; }

int main() {
  int* sums = nullptr;
  if (cudaMalloc(&sums, 32 * sizeof(int)) != cudaSuccess) return 1;
  clear<<<1, 32>>>(sums);
  parent<<<4, 64>>>(sums, 200);
  looping_parent<<<1, 64>>>(sums, 200);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
