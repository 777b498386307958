// Merge sort by blocks of 32 threads: the first thread launches a block for each half and waits for both.
// After a barrier, all threads of the block merge the halves. Each thread finds the places of its values by
// binary search in the other half.
#include "sizes.h"

namespace {

constexpr int kBlockSize = 32;

}  // namespace

extern "C" __global__ void merge_sort(unsigned* values, unsigned* scratch, int count);

#ifdef __CUDACC__
namespace {

// The number of values less than this one, or not greater than it.
__device__ int count_before(const unsigned* values, int count, unsigned value, bool or_equal) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (values[middle] < value || (or_equal && values[middle] == value)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Sorts at most one value a thread by counting the values that come before it.
__device__ void sort_small(unsigned* values, int count) {
  __shared__ unsigned shared[kBlockSize];
  const int thread = threadIdx.x;
  if (thread < count) shared[thread] = values[thread];
  __syncthreads();
  if (thread >= count) return;
  int place = 0;
  for (int i = 0; i < count; ++i) {
    if (shared[i] < shared[thread] || (shared[i] == shared[thread] && i < thread)) ++place;
  }
  values[place] = shared[thread];
}

__device__ void merge(unsigned* values, unsigned* scratch, int half, int count) {
  for (int i = threadIdx.x; i < count; i += kBlockSize) {
    const bool is_left = i < half;
    const int place = is_left ? i + count_before(values + half, count - half, values[i], false)
                              : i - half + count_before(values, half, values[i], true);
    scratch[place] = values[i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kBlockSize) values[i] = scratch[i];
}

}  // namespace

extern "C" __global__ void merge_sort(unsigned* values, unsigned* scratch, int count) {
  if (count <= kBlockSize) {
    sort_small(values, count);
    return;
  }
  const int half = count / 2;
  if (threadIdx.x == 0) {
    merge_sort<<<1, kBlockSize>>>(values, scratch, half);
    merge_sort<<<1, kBlockSize>>>(values + half, scratch + half, count - half);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  merge(values, scratch, half, count);
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>
#include <random>

namespace {

std::vector<unsigned> random_values(int count) {
  std::mt19937 random(count);
  std::vector<unsigned> values(count);
  for (unsigned& value : values) value = random() % 5000;
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("merge_sort", argc, argv, [](gpu::Report& report, int size) {
    const int counts[] = {50, 500, 5000};
    std::vector<unsigned> want = random_values(counts[size]);
    const gpu::Buffer<unsigned> values(want), scratch(want.size());
    WAITING_LAUNCH(merge_sort, 1, kBlockSize)(values.data(), scratch.data(), counts[size]);
    gpu::wait("merge_sort");
    std::sort(want.begin(), want.end());
    report.expect_equal("a sorted value", values.to_host(), want);
  });
}
#endif
