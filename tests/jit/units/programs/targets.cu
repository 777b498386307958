// Built as programs often are: machine code for this device, PTX for a newer one only. -DDEPENDS_ON_TARGET
// makes the source look at the target that it is compiled for, -DNEEDS_TARGET makes it use what only the
// newer one has.
__device__ int total;

__device__ __noinline__ int weight(int v) {
#if defined(DEPENDS_ON_TARGET) && __CUDA_ARCH__ >= 900
  return v * 3;
#else
  return v * 2;
#endif
}

__global__ void child(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out + i, weight(n));
  if (i < n) atomicAdd(&total, 1);
}

__global__ void parent(int* out, const int* n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(NEEDS_TARGET) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (n[i] > 0) child<<<(n[i] + 31) / 32, 32>>>(out, n[i]);
}

int main() {
  parent<<<1, 1>>>(nullptr, nullptr);
  return 0;
}
