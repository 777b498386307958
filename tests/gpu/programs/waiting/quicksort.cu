// Quicksort by one thread a grid: it partitions its range, launches a grid for each half and waits. Then its
// range is sorted, and the grid takes a checksum of it, which depends on the order.
#include "sizes.h"

// The range of one grid and its checksum, at the place of the grid's pivot.
struct Sorted {
  int first, last;
  unsigned checksum;
};

namespace {

constexpr int kSmall = 12;

__host__ __device__ unsigned checksum(const unsigned* values, int first, int last) {
  unsigned sum = 0;
  for (int i = first; i <= last; ++i) sum = 31 * sum + values[i];
  return sum;
}

}  // namespace

extern "C" __global__ void quicksort(unsigned* values, Sorted* grids, int first, int last);

#ifdef __CUDACC__
namespace {

__device__ void swap(unsigned& a, unsigned& b) {
  const unsigned old = a;
  a = b;
  b = old;
}

__device__ void insertion_sort(unsigned* values, int first, int last) {
  for (int i = first + 1; i <= last; ++i) {
    const unsigned value = values[i];
    int to = i;
    for (; to > first && values[to - 1] > value; --to) values[to] = values[to - 1];
    values[to] = value;
  }
}

// Moves smaller values before the pivot and others behind it; returns where the pivot is then.
__device__ int partition(unsigned* values, int first, int last) {
  swap(values[first + (last - first) / 2], values[last]);
  const unsigned pivot = values[last];
  int end = first;
  for (int i = first; i < last; ++i) {
    if (values[i] < pivot) swap(values[i], values[end++]);
  }
  swap(values[end], values[last]);
  return end;
}

}  // namespace

extern "C" __global__ void quicksort(unsigned* values, Sorted* grids, int first, int last) {
  if (last - first < kSmall) {
    insertion_sort(values, first, last);
    return;
  }
  const int middle = partition(values, first, last);
  if (first < middle) quicksort<<<1, 1>>>(values, grids, first, middle - 1);
  if (middle < last) quicksort<<<1, 1>>>(values, grids, middle + 1, last);
  cudaDeviceSynchronize();
  grids[middle] = {first, last, checksum(values, first, last)};
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>
#include <random>

namespace {

std::vector<unsigned> random_values(int count) {
  std::mt19937 random(count);
  std::vector<unsigned> values(count);
  for (unsigned& value : values) value = random() % 1000;
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("quicksort", argc, argv, [](gpu::Report& report, int size) {
    const int counts[] = {20, 200, 1500};
    std::vector<unsigned> want = random_values(counts[size]);
    const gpu::Buffer<unsigned> values(want);
    const gpu::Buffer<Sorted> grids(want.size());
    WAITING_LAUNCH(quicksort, 1, 1)(values.data(), grids.data(), 0, counts[size] - 1);
    gpu::wait("quicksort");

    std::sort(want.begin(), want.end());
    report.expect_equal("a sorted value", values.to_host(), want);
    int longest = 0;
    std::vector<unsigned> sums, want_sums;
    for (const Sorted& grid : grids.to_host()) {
      if (grid.last == 0) continue;
      longest = std::max(longest, grid.last - grid.first + 1);
      sums.push_back(grid.checksum);
      want_sums.push_back(checksum(want.data(), grid.first, grid.last));
    }
    report.expect_equal("the longest range", std::vector<int>{longest}, {counts[size]});
    report.expect_equal("the checksum of a range", sums, want_sums);
  });
}
#endif
