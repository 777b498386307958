// Kernels with hints, for the tests that look at what the compiler makes of them. WITHOUT_HINTS: the same
// program as if nobody had written any.
#include <klap/annotate.cuh>

#ifdef WITHOUT_HINTS
#undef KLAP_AGGREGATE
#undef KLAP_AGGREGATE_LAUNCH
#define KLAP_AGGREGATE(...)
#define KLAP_AGGREGATE_LAUNCH(...)
#endif

#define GROUP 8

__global__ void child(int* sums, int value) { atomicAdd(sums + blockIdx.x, value + threadIdx.x); }

extern "C" {

// One for the kernel, of every key; numbers may be macros.
__global__ void whole_kernel(int* sums, int count) {
  KLAP_AGGREGATE(granularity(multiblock), multiblock(GROUP), launcher(device), concurrency(16),
                 consumer_threads(128), buffer(malloc), pool_bytes(64M), ordering(relaxed));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) child<<<i % 7 + 1, 32>>>(sums, i);
}

// Each launch its own.
__global__ void each_launch(int* sums, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    KLAP_AGGREGATE_LAUNCH(granularity(warp));
    child<<<i % 7 + 1, 32>>>(sums, i);
  } else {
    KLAP_AGGREGATE_LAUNCH(granularity(none));
    child<<<1, 32>>>(sums, -i);
  }
}

// Two launches that cannot both have what they ask for: the first decides.
__global__ void two_minds(int* sums, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  KLAP_AGGREGATE_LAUNCH(granularity(grid), launcher(device));
  child<<<i % 7 + 1, 32>>>(sums, i);
  KLAP_AGGREGATE_LAUNCH(granularity(block));
  child<<<1, 32>>>(sums, -i);
}

__global__ void two_launchers(int* sums, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  child<<<i % 7 + 1, 32>>>(sums, i);
  KLAP_AGGREGATE_LAUNCH(launcher(device));
  child<<<1, 32>>>(sums, -i);
  KLAP_AGGREGATE_LAUNCH(launcher(host));
  child<<<2, 32>>>(sums, -i);
}

// The launch has the last word, the kernel the one before.
__global__ void kernel_and_launch(int* sums, int count) {
  KLAP_AGGREGATE(granularity(block));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  KLAP_AGGREGATE_LAUNCH(granularity(warp));
  child<<<i % 7 + 1, 32>>>(sums, i);
}

// Unrolled: the compiler has made two launches of one, and with each goes the hint.
__global__ void unrolled(int* sums, int count) {
#pragma unroll
  for (int round = 0; round < 2; ++round) {
    KLAP_AGGREGATE_LAUNCH(granularity(warp));
    child<<<2, 32>>>(sums, count + round);
  }
}

__global__ void unhinted(int* sums, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) child<<<i % 7 + 1, 32>>>(sums, i);
}

// What is wrong is said and ignored; a stray hint, too.
__global__ void wrong_hints(int* sums, int count) {
  KLAP_AGGREGATE(granularity(gird), launcher(host));
  KLAP_AGGREGATE(launcher(device));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  KLAP_AGGREGATE_LAUNCH(pool_bytes(64M));
  if (i < count) child<<<i % 7 + 1, 32>>>(sums, i);
  KLAP_AGGREGATE_LAUNCH(granularity(warp));
}

}  // extern "C"

// Inlined functions and templates bring their hints along.
__device__ __forceinline__ void inlined(int* sums, int value) {
  KLAP_AGGREGATE_LAUNCH(granularity(warp));
  child<<<value % 7 + 1, 32>>>(sums, value);
}

template <typename Count>
__global__ void instantiated(int* sums, Count count) {
  KLAP_AGGREGATE(launcher(device));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) inlined(sums, i);
}
template __global__ void instantiated<long long>(int*, long long);
