// Copies, sets, the heap, printf, assertions and queries of device code.
#include <cassert>
#include <cstdio>

extern "C" __global__ void fill(int* p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = i;
}
extern "C" __global__ void add_one(int* p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) ++p[i];
}

// In stream order with kernels: fill a; copy a to b; add one to a; copy a to c; clear part of b.
extern "C" __global__ void copies(int* a, int* b, int* c, int n) {
  fill<<<1, 64>>>(a, n);
  cudaMemcpyAsync(b, a, n * sizeof(int), cudaMemcpyDeviceToDevice, 0);
  add_one<<<1, 64>>>(a, n);
  cudaMemcpyAsync(c, a, n * sizeof(int), cudaMemcpyDefault, 0);
  cudaMemsetAsync(b + 1, 0xff, 7, 0);
}

// 5 rows of 3 bytes out of rows of 8, into rows of 4; then a set of 2 by 2.
extern "C" __global__ void boxes(char* to, const char* from) {
  cudaMemcpy2DAsync(to, 4, from, 8, 3, 5, cudaMemcpyDeviceToDevice, 0);
  cudaMemset2DAsync(to, 4, 'z', 2, 2, 0);
  cudaMemcpy3DParms p = {};
  p.srcPtr = {(void*)from, 8, 8, 2};
  p.srcPos = {1, 0, 1};
  p.dstPtr = {to + 32, 4, 4, 3};
  p.extent = {2, 2, 1};
  p.kind = cudaMemcpyDeviceToDevice;
  cudaMemcpy3DAsync(&p, 0);
}

extern "C" __global__ void bad_copy(char* to, const char* from) {
  cudaMemcpyAsync(to, from, 1 << 20, cudaMemcpyDeviceToDevice, 0);
}

extern "C" __global__ void local_copy(char* to, int* code) {
  char here[8] = {};
  *code = cudaMemcpyAsync(to, here, 8, cudaMemcpyDeviceToDevice, 0);
}

// How many pieces of so many bytes fit into the heap; all are written, checked and freed.
extern "C" __global__ void use_heap(unsigned bytes, unsigned* got, unsigned* wrong) {
  unsigned** last = nullptr;
  unsigned n = 0;
  while (unsigned** piece = (unsigned**)malloc(bytes)) {
    piece[0] = (unsigned*)last;
    ((unsigned*)piece)[2] = n++;
    last = piece;
  }
  *got = n;
  *wrong = 0;
  while (last != nullptr) {
    if (((unsigned*)last)[2] != --n) ++*wrong;
    unsigned** next = (unsigned**)last[0];
    free(last);
    last = next;
  }
}

extern "C" __global__ void runtime_heap(int* codes, int* value) {
  int* p = nullptr;
  codes[0] = cudaMalloc(&p, 64);
  p[3] = 5;
  *value = p[3];
  codes[1] = cudaFree(p);
  codes[2] = cudaMalloc(&p, 1ull << 40);
  codes[3] = cudaGetLastError();
  codes[4] = cudaFree(nullptr);
}

extern "C" __global__ void free_twice() {
  void* p = malloc(8);
  free(p);
  free(p);
}

// One thread frees what another one wrote, with a barrier between them or without.
extern "C" __global__ void free_beside_write(int ordered) {
  __shared__ int* p;
  if (threadIdx.x == 0) p = static_cast<int*>(malloc(3 * sizeof(int)));
  __syncthreads();
  if (threadIdx.x == 1) p[2] = 1;
  if (ordered) __syncthreads();
  if (threadIdx.x == 0) free(p);
}

extern "C" __global__ void say(const char* name) {
  const int n = printf("%s: block %d of %u, %5.2f %lld %p\n", name, blockIdx.x, gridDim.x,
                       0.125 * threadIdx.x, -(1ll << 40), (void*)0x10);
  if (n != 6) printf("printf returned %d\n", n);
}

extern "C" __global__ void expect_small(int n) { assert(n < 3); }

__device__ int equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

extern "C" __global__ void __launch_bounds__(128) queries(int* out) {
  __shared__ int used[256];
  used[threadIdx.x] = out[0];  // -1
  size_t limit = 0;
  int i = 0;
  cudaFuncAttributes attributes;
  out[i] = cudaGetDevice(&out[i + 1]), i += 2;
  out[i] = cudaGetDeviceCount(&out[i + 1]), i += 2;
  out[i] = cudaDeviceGetAttribute(&out[i + 1], cudaDevAttrMultiProcessorCount, 0), i += 2;
  out[i] = cudaDeviceGetAttribute(&out[i + 1], cudaDevAttrWarpSize, 1), i += 2;
  out[i++] = cudaGetLastError();
  out[i++] = cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount);
  out[i++] = (int)limit;
  out[i++] = cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  out[i++] = (int)limit;
  out[i++] = cudaFuncGetAttributes(&attributes, queries);
  out[i++] = attributes.maxThreadsPerBlock;
  out[i++] = (int)attributes.sharedSizeBytes + used[threadIdx.x];
  out[i] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out[i + 1], queries, 128, 0), i += 2;
  out[i++] =
      equal(cudaGetErrorName(cudaErrorLaunchPendingCountExceeded), "cudaErrorLaunchPendingCountExceeded");
  out[i++] = equal(cudaGetErrorString(cudaErrorInvalidValue), "cudaErrorInvalidValue");
}
