// Children that sum up a range of elements and store what they find: their parts are joined, and the last one
// does what the child does. That is wrong as soon as it is another part, or has another sum, or if a block of
// one warp does something else.
#include "program.h"

constexpr int kChildren = 24, kThreads = 64;  // of the parent's only block; of a child

// Elements of a child: none, few, and up to many parts of 256.
int elements_of(int t) { return t * 97 % 1100; }

// Thread 0 gets the sum, in blocks of any power of two.
__device__ int block_sum(int mine) {
  __shared__ int of_thread[kThreads];
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
    __syncthreads();
  }
  return of_thread[0];
}
__device__ int own_sum(const int* x, int begin, int end) {
  int mine = 0;
#pragma unroll 1
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  return mine;
}

__global__ void store_sum(const int* x, int begin, int end, int* out) {
  const int sum = block_sum(own_sum(x, begin, end));
  if (threadIdx.x == 0) out[0] = sum;
}
__global__ void store_count(const int* x, int begin, int end, int* out) {
  const int sum = block_sum(own_sum(x, begin, end));
  if (threadIdx.x == 0) out[0] = sum + 100000 * (end - begin);
}
__global__ void store_with_threads(const int* x, int begin, int end, int* out) {
  const int sum = block_sum(own_sum(x, begin, end));
  if (threadIdx.x == 0) out[0] = sum + 100000 * static_cast<int>(blockDim.x);
}
__global__ void store_large(const int* x, int begin, int end, int* out) {
  const int sum = block_sum(own_sum(x, begin, end));
  if (threadIdx.x != 0) return;
  if (sum > 9000) {
    out[0] = sum;
  } else {
    out[1] = sum + 100000 * static_cast<int>(blockDim.x);
  }
}
// Only the first warp's elements.
__global__ void store_of_some(const int* x, int begin, int end, int* out) {
  int mine = own_sum(x, begin, end);
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
  if (threadIdx.x == 0) out[0] = mine;
}

#define PARENT(name, child)                                         \
  __global__ void name(const int* x, const int* first, int* out) {  \
    const int t = threadIdx.x;                                      \
    child<<<1, kThreads>>>(x, first[t], first[t + 1], out + 2 * t); \
  }
PARENT(store_sums, store_sum)
PARENT(store_counts, store_count)
PARENT(store_all_with_threads, store_with_threads)
PARENT(store_all_large, store_large)
PARENT(store_all_of_some, store_of_some)
#undef PARENT

// `store`: what a child stores, from the sums of its first and its second warp, and its elements.
template <class Parent, class Store>
void expect(gpu::Report& report, const char* what, Parent parent, const std::vector<int>& first,
            Store store) {
  std::vector<int> x(first.back()), expected(2 * kChildren);
  for (size_t e = 0; e < x.size(); ++e) x[e] = static_cast<int>(e * 29 % 83);
  for (int t = 0; t < kChildren; ++t) {
    int sums[2] = {0, 0};
    for (int e = first[t]; e < first[t + 1]; ++e) sums[(e - first[t]) % kThreads / 32] += x[e];
    store(expected.data() + 2 * t, sums, first[t + 1] - first[t]);
  }
  gpu::Buffer<int> elements(x), ranges(first), out(std::vector<int>(2 * kChildren, 0));
  for (int launch = 0; launch < 3; ++launch) {  // a later one finds the records of the first
    parent<<<1, kChildren>>>(elements.data(), ranges.data(), out.data());
    gpu::wait(what);
  }
  report.expect_equal(what, out.to_host(), expected);
}

int main() {
  gpu::Report report("joined");
  std::vector<int> first = {0};
  for (int t = 0; t < kChildren; ++t) first.push_back(first.back() + elements_of(t));
  expect(report, "sums", store_sums, first,
         [](int* out, const int* sums, int) { out[0] = sums[0] + sums[1]; });
  expect(report, "counts", store_counts, first,
         [](int* out, const int* sums, int count) { out[0] = sums[0] + sums[1] + 100000 * count; });
  expect(report, "with threads", store_all_with_threads, first,
         [](int* out, const int* sums, int) { out[0] = sums[0] + sums[1] + 100000 * kThreads; });
  expect(report, "large", store_all_large, first, [](int* out, const int* sums, int) {
    const int sum = sums[0] + sums[1];
    out[sum > 9000 ? 0 : 1] = sum > 9000 ? sum : sum + 100000 * kThreads;
  });
  expect(report, "of some", store_all_of_some, first,
         [](int* out, const int* sums, int) { out[0] = sums[0]; });
  return report.finish();
}
