// Children that sum up a range of elements: what they know of their range or of their block, and what they
// read of the sums, is wrong as soon as parts of the range run in its place.
#include "program.h"

constexpr int kChildren = 32, kThreads = 64;  // of the parent's only block; of a child

// Elements of a child: none, few, and up to many parts of 256.
int elements_of(int t) { return t * 53 % 700; }

// The sum of 64 threads, for blocks of this size only.
__device__ void add_to(int* sum, int mine) {
  __shared__ int of_thread[kThreads];
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, of_thread[0]);
}

__global__ void sum_in_block(const int* x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  add_to(sum, mine);
}
__global__ void sum_by_threads(const int* x, int begin, int end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  atomicAdd(sum, mine);
}
__global__ void sum_by_place(const int* x, int begin, int end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e] * (e - begin);
  atomicAdd(sum, mine);
}
__global__ void sum_of_some(const int* x, int begin, int end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  if (threadIdx.x < 32) atomicAdd(sum, mine);
}
// Threads may wrap around before their first element.
__global__ void sum_around(const int* x, unsigned begin, unsigned end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (unsigned e = begin + threadIdx.x; e < end; e += blockDim.x) mine += x[e];
  atomicAdd(sum, mine);
}

// For blocks of any power of two, and given pointers to its elements.
__global__ void sum_counted(const int* x, int count, int* sum) {
  __shared__ int of_thread[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int mine = 0;
#pragma unroll 1
  for (int e = thread; e < count; e += static_cast<int>(blockDim.x)) mine += x[e];
  of_thread[thread] = mine;
  __syncthreads();
  for (int width = static_cast<int>(blockDim.x) / 2; width > 0; width /= 2) {
    if (thread < width) of_thread[thread] += of_thread[thread + width];
    __syncthreads();
  }
  if (thread == 0) atomicAdd(sum, of_thread[0]);
}

__global__ void sum_all_counted(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_counted<<<1, kThreads>>>(x + first[t], first[t + 1] - first[t], sums + 2 * t);
}
__global__ void sum_all_in_blocks(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_in_block<<<1, kThreads>>>(x, first[t], first[t + 1], sums + 2 * t);
}
__global__ void sum_all_by_threads(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_by_threads<<<1, kThreads>>>(x, first[t], first[t + 1], sums + 2 * t);
}
constexpr unsigned kAround = 0U - 40;
__global__ void sum_all_around(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_around<<<1, kThreads>>>(x, kAround, first[t + 1] - first[t], sums + 2 * t);
}
__global__ void sum_all_by_place(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_by_place<<<1, kThreads>>>(x, first[t], first[t + 1], sums + 2 * t);
}
__global__ void sum_all_of_some(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_of_some<<<1, kThreads>>>(x, first[t], first[t + 1], sums + 2 * t);
}

std::vector<int> all_elements(const std::vector<int>& first) {
  std::vector<int> x(first.back());
  for (size_t e = 0; e < x.size(); ++e) x[e] = static_cast<int>(e * 29 % 83);
  return x;
}

// The first elements of all, by a block whose threads wrap around.
void expect_around(gpu::Report& report, const std::vector<int>& first) {
  const std::vector<int> x = all_elements(first);
  std::vector<int> expected(2 * kChildren);
  for (int t = 0; t < kChildren; ++t) {
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      for (unsigned e = kAround + thread; e < static_cast<unsigned>(first[t + 1] - first[t]); e += kThreads)
        expected[2 * t] += x[e];
    }
  }
  gpu::Buffer<int> elements(x), ranges(first), sums(std::vector<int>(2 * kChildren, 0));
  sum_all_around<<<1, kChildren>>>(elements.data(), ranges.data(), sums.data());
  gpu::wait("around");
  report.expect_equal("around", sums.to_host(), expected);
}

template <class Parent, class Add>
void expect(gpu::Report& report, const char* what, Parent parent, const std::vector<int>& first, Add add) {
  const std::vector<int> x = all_elements(first);
  std::vector<int> expected(2 * kChildren);
  for (int t = 0; t < kChildren; ++t) {
    for (int e = first[t]; e < first[t + 1]; ++e) add(expected.data() + 2 * t, x[e], e - first[t]);
  }
  gpu::Buffer<int> elements(x), ranges(first), sums(std::vector<int>(2 * kChildren, 0));
  parent<<<1, kChildren>>>(elements.data(), ranges.data(), sums.data());
  gpu::wait(what);
  report.expect_equal(what, sums.to_host(), expected);
}

int main() {
  gpu::Report report("parts");
  std::vector<int> first = {0};
  for (int t = 0; t < kChildren; ++t) first.push_back(first.back() + elements_of(t));
  const auto to_first = [](int* sum, int x, int) { *sum += x; };
  expect(report, "by threads", sum_all_by_threads, first, to_first);
  expect_around(report, first);
  expect(report, "in blocks", sum_all_in_blocks, first, to_first);
  expect(report, "counted", sum_all_counted, first, to_first);
  expect(report, "by place", sum_all_by_place, first, [](int* sum, int x, int place) { *sum += x * place; });
  expect(report, "of some", sum_all_of_some, first,
         [](int* sum, int x, int place) { *sum += place % kThreads < 32 ? x : 0; });
  return report.finish();
}
