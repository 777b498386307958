// Children that sum up ranges of elements: thousands of short ones, none, backwards ones, some that begin
// below 0, and a few of tens of millions of elements, which a consumer spreads over all of its blocks.
#include <algorithm>

#include "program.h"

constexpr int kElements = 40'000'000;
constexpr int kMost = 1'500;  // children of a parent

__device__ int sum_of_block(int value) {
  __shared__ int of_warp[32];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  }
  return value;
}

__global__ void sum_range(const int* x, int begin, int end, int* out) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = sum_of_block(mine);
  if (threadIdx.x == 0) atomicAdd(out, mine);
}
__global__ void sum_counted(const int* x, int count, int* out) {
  int mine = 0;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x)) mine += x[e];
  mine = sum_of_block(mine);
  if (threadIdx.x == 0) atomicAdd(out, mine);
}
__global__ void find_most(const int* x, int begin, int end, int* out) {
  int most = -3'000;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    most = max(most, x[e]);
  atomicMax(out, most);
}

// What a child stores: these run in parts with split_ranges=all.
__global__ void store_mean(const int* x, int begin, int end, int* out) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = sum_of_block(mine);
  if (threadIdx.x == 0) *out = end > begin ? mine / (end - begin) : 7;
}
__global__ void store_most(const int* x, int count, int* out) {
  __shared__ float of_thread[128];
  float most = -3'000.0f;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x))
    most = fmaxf(most, static_cast<float>(x[e]));
  of_thread[threadIdx.x] = most;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width)
      of_thread[threadIdx.x] = fmaxf(of_thread[threadIdx.x], of_thread[threadIdx.x + width]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = static_cast<int>(of_thread[0]) * 3;
}

struct Ranges {
  const int *begin, *end;
  int count;
};
__global__ void sum_ranges(const int* x, Ranges ranges, int* out) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < ranges.count) sum_range<<<1, 256>>>(x, ranges.begin[t], ranges.end[t], out + t);
}
__global__ void sum_all_counted(const int* x, Ranges ranges, int* out) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < ranges.count)
    sum_counted<<<1, 128>>>(x + ranges.begin[t], ranges.end[t] - ranges.begin[t], out + t);
}
__global__ void find_all_most(const int* x, Ranges ranges, int* out) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < ranges.count) find_most<<<1, 64>>>(x, ranges.begin[t], ranges.end[t], out + t);
}

__global__ void store_means(const int* x, Ranges ranges, int* out) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < ranges.count) store_mean<<<1, 256>>>(x, ranges.begin[t], ranges.end[t], out + t);
}
__global__ void store_all_most(const int* x, Ranges ranges, int* out) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < ranges.count) store_most<<<1, 128>>>(x + ranges.begin[t], ranges.end[t] - ranges.begin[t], out + t);
}

unsigned next_random() {
  static unsigned state = 7;
  state = state * 1664525U + 1013904223U;
  return state >> 4;
}

struct HostRanges {
  std::vector<int> begin, end;
};

// Ranges of up to `most` elements of an array whose element 0 has `below` others below it.
HostRanges ranges_of(int count, int most, int below) {
  HostRanges out;
  for (int t = 0; t < count; ++t) {
    const int length = t % 17 == 3 ? 0 : t % 29 == 5 ? -3 : static_cast<int>(next_random() % most);
    out.begin.push_back(static_cast<int>(next_random() % (kElements - most)) + 3 - below);
    out.end.push_back(out.begin.back() + length);
  }
  return out;
}

template <class Parent, class Expected>
void check_parent(gpu::Report& report, const char* what, const int* x, const HostRanges& ranges,
                  Parent parent, Expected expected) {
  gpu::Buffer<int> begin(ranges.begin), end(ranges.end);
  const int count = static_cast<int>(ranges.begin.size());
  gpu::Buffer<int> out(count);
  parent<<<(count + 127) / 128, 128>>>(x, Ranges{begin.data(), end.data(), count}, out.data());
  gpu::wait(what);
  std::vector<int> want;
  for (int t = 0; t < count; ++t) want.push_back(expected(ranges.begin[t], ranges.end[t]));
  report.expect_equal(what, out.to_host(), want);
}

void check_ranges(gpu::Report& report, const char* what, const std::vector<int>& x,
                  const gpu::Buffer<int>& on_device, const HostRanges& ranges, int below) {
  const auto sum = [&](int begin, int end) {
    unsigned found = 0;
    for (int e = begin; e < end; ++e) found += static_cast<unsigned>(x[e + below]);
    return static_cast<int>(found);
  };
  const auto most = [&](int begin, int end) {
    int found = 0;
    for (int e = begin; e < end; ++e) found = std::max(found, x[e + below]);
    return found;
  };
  const auto mean = [&](int begin, int end) { return end > begin ? sum(begin, end) / (end - begin) : 7; };
  const auto largest = [&](int begin, int end) {
    int found = -3'000;
    for (int e = begin; e < end; ++e) found = std::max(found, x[e + below]);
    return 3 * found;
  };
  const int* const elements = on_device.data() + below;
  check_parent(report, what, elements, ranges, sum_ranges, sum);
  check_parent(report, what, elements, ranges, sum_all_counted, sum);
  check_parent(report, what, elements, ranges, find_all_most, most);
  check_parent(report, what, elements, ranges, store_means, mean);
  check_parent(report, what, elements, ranges, store_all_most, largest);
}

int main() {
  gpu::Report report("ranges");
  std::vector<int> x(kElements);
  for (int& value : x) value = static_cast<int>(next_random() % 4'000) - 2'000;
  gpu::Buffer<int> on_device(x);
  check_ranges(report, "short ranges", x, on_device, ranges_of(kMost, 40, 0), 0);
  check_ranges(report, "ranges around a part", x, on_device, ranges_of(kMost, 700, 0), 0);
  check_ranges(report, "longer ranges", x, on_device, ranges_of(kMost, 5'000, 0), 0);
  check_ranges(report, "ranges below 0", x, on_device, ranges_of(kMost, 5'000, kElements / 2), kElements / 2);
  check_ranges(report, "huge ranges", x, on_device, {{0, 5, 1'000, 17}, {30'000'000, 17'000'005, 1'003, 17}},
               0);
  return report.finish();
}
