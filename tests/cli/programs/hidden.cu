// Kernels that other units cannot see, and a function that stays although all its calls are inlined.
static __global__ void child(int* sums) { atomicAdd(sums + threadIdx.x, 1); }

namespace {
__global__ void other(int* sums) { atomicAdd(sums, 1); }
}  // namespace

__device__ void launch(int* sums) { child<<<1, 32>>>(sums); }

__global__ void parent(int* sums) { launch(sums); }
__global__ void other_parent(int* sums) { other<<<2, 32>>>(sums); }
