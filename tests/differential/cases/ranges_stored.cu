// Children that sum up a range of elements and store what they find, or do something else with it. Their
// parts are joined with split_ranges=all (src/analysis/ranges/range_split.h), where that is the same.
#include "range_elements.h"

#ifdef __CUDACC__

template <class Value>
__global__ void store_sum(const Value* x, int begin, int end, Value* sum) {
  Value mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = mine;
}
extern "C" __global__ void ranges_stored_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  store_sum<int><<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
__constant__ int weights[4] = {3, 5, 7, 11};
__global__ void store_weighed(const int* x, const int* places, int begin, int end, long long* sums, int t) {
  __shared__ int of_thread[128];
  int mine = 0, most = -1;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x)) {
    mine += x[e];
    most = max(most, x[e]);
  }
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
    __syncthreads();
  }
  mine = of_thread[0];
  __syncthreads();
  of_thread[threadIdx.x] = most;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width)
      of_thread[threadIdx.x] = max(of_thread[threadIdx.x], of_thread[threadIdx.x + width]);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const int place = places[t];
  sums[place] = sums[place] * weights[1] + mine * of_thread[0] / weights[0];
}
extern "C" __global__ void ranges_weighed_parent(const int* x, const int* first, const int* places,
                                                 long long* sums) {
  const int t = threadIdx.x;
  store_weighed<<<1, 128>>>(x, places, first[t], first[t + 1], sums, t);
}
__global__ void store_extrema(const float* x, int count, float* high, double* low) {
  float most = -5;
  double least = 5000;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x)) {
    most = fmaxf(most, x[e]);
    least = fmin(least, static_cast<double>(x[e]));
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    least = fmin(least, __shfl_xor_sync(~0u, least, distance));
  }
  if (threadIdx.x != 0) return;
  *high = most;
  *low = least;
}
extern "C" __global__ void ranges_of_extrema_stored_parent(const float* x, const int* first, float* high,
                                                           double* low) {
  const int t = threadIdx.x;
  store_extrema<<<1, 32>>>(x + first[t], first[t + 1] - first[t], high + t, low + t);
}
__global__ void add_scaled(const float* x, int begin, int end, const float* scale, float* sum, int* done) {
  float mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x != 0) return;
  atomicAdd(sum, mine * *scale);
  atomicAdd(done, 1);
}
extern "C" __global__ void ranges_scaled_parent(const float* x, const int* first, const float* scale,
                                                float* sums, int* done) {
  const int t = threadIdx.x;
  add_scaled<<<1, 64>>>(x, first[t], first[t + 1], scale, sums + t, done);
}
extern "C" __global__ void ranges_of_reals_stored_parent(const float* x, const int* first, float* sums) {
  const int t = threadIdx.x;
  store_sum<float><<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
// Sums of parts are subnormal here, where the sum of all need not be.
__global__ void store_small_sum(const float* x, int begin, int end, float* sum) {
  float mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e] * 0x1p-140f;
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = mine * 0x1p100f * 0x1p40f;
}
extern "C" __global__ void ranges_of_small_reals_parent(const float* x, const int* first, float* sums) {
  const int t = threadIdx.x;
  store_small_sum<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
// A mean needs the ends of the whole range, and what is written depends on the sum.
__global__ void store_mean(const int* x, int begin, int end, int limit, int* mean, int* large) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x != 0) return;
  *mean = end > begin ? mine / (end - begin) : -1;
  if (mine > limit) atomicAdd(large, 1);
}
extern "C" __global__ void ranges_of_means_parent(const int* x, const int* first, int limit, int* means,
                                                  int* large) {
  const int t = threadIdx.x;
  store_mean<<<1, 64>>>(x, first[t], first[t + 1], limit, means + t, large);
}
__global__ void store_mean_counted(const int* x, int count, float* mean) {
  int mine = 0;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x)) mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *mean = static_cast<float>(mine) / static_cast<float>(count);
}
extern "C" __global__ void ranges_of_means_counted_parent(const int* x, const int* first, float* means) {
  const int t = threadIdx.x;
  if (first[t] < first[t + 1])
    store_mean_counted<<<1, 96>>>(x + first[t], first[t + 1] - first[t], means + t);
}
// What must not be joined: each warp stores its own sum, and other threads write, too.
__global__ void store_by_warps(const int* x, int begin, int end, int* sums) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = mine;
}
extern "C" __global__ void ranges_stored_by_warps_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  store_by_warps<<<1, 64>>>(x, first[t], first[t + 1], sums + 2 * t);
}
__global__ void store_and_mark(const int* x, int begin, int end, int* sum, int* marks) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = mine;
  marks[threadIdx.x] = static_cast<int>(blockDim.x);
}
extern "C" __global__ void ranges_stored_and_marked_parent(const int* x, const int* first, int* sums,
                                                           int* marks) {
  const int t = threadIdx.x;
  store_and_mark<<<1, 64>>>(x, first[t], first[t + 1], sums + t, marks + 64 * t);
}
// The array that is summed up is the one that the sums go to: nothing may be written before all has been
// read.
__global__ void replace_first(int* x, int begin, int end) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) x[begin] = mine;
}
extern "C" __global__ void ranges_replaced_parent(int* x, const int* first) {
  const int t = threadIdx.x;
  if (first[t] == first[t + 1]) return;
  replace_first<<<1, 64, 0, cudaStreamFireAndForget>>>(x, first[t], first[t + 1]);
}

// Its way to add up the sums suits only blocks of 128 threads.
__global__ void store_for_one_size(const int* x, int begin, int end, int* sum) {
  __shared__ int of_thread[128];
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x < 64) of_thread[threadIdx.x] += of_thread[threadIdx.x + 64];
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = of_thread[threadIdx.x] + of_thread[threadIdx.x + 32];
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(~0u, mine, distance);
  }
  if (threadIdx.x == 0) *sum = 2 * mine + end;
}
extern "C" __global__ void ranges_stored_for_one_size_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  store_for_one_size<<<1, 128>>>(x, first[t], first[t / 8 * 8 + 8], sums + t);
}

// Threads wrap around before their first element, so which elements are visited depends on the block's width.
__global__ void store_around(const int* x, unsigned begin, unsigned end, int* sum) {
  int mine = 0;
  for (unsigned e = begin + threadIdx.x; e < end; e += blockDim.x) mine += x[e % 1024];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = mine + static_cast<int>(end);
}
extern "C" __global__ void ranges_stored_around_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  store_around<<<1, 64>>>(x, begin_around(t, first[t]), first[t + 1], sums + t);
}

#else

#include <algorithm>

namespace klap::differential {

namespace {

// A parent that is given the elements, the ranges and one place for what each child stores: find(t).
template <class Value = int, class Element = int, class Find>
void stored(Builder& c, const char* parent, Find find) {
  const auto x = c.input("x", elements<Element>());
  const auto first = c.input("first", firsts());
  std::vector<Value> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(static_cast<Value>(find(t)));
  const auto sums = c.buffer("out", std::vector<Value>(kThreads, 10), out);
  c.launch(parent, kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten(parent);
}

}  // namespace

KLAP_CASE(ranges_stored, "a part's sum is stored, and not the child's") {
  stored(c, "ranges_stored_parent", sum_of);
}
KLAP_CASE(ranges_of_reals_stored, "a part's sum of floating-point numbers is stored") {
  stored<float, float>(c, "ranges_of_reals_stored_parent", sum_of);
}
KLAP_CASE(ranges_of_small_reals, "sums of parts that are subnormal are taken for zero") {
  stored<float, float>(c, "ranges_of_small_reals_parent", sum_of);
}

KLAP_CASE(ranges_weighed, "a part goes on with its own sum, or with another child's memory") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> place_of;
  std::vector<long long> out(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    place_of.push_back((t * 7 + 3) % kThreads);
    const int most = over_range(t, -1, [](int a, int b, int) { return std::max(a, b); });
    out[static_cast<size_t>(place_of.back())] = 10 * 5 + sum_of(t) * most / 3;
  }
  const auto places = c.input("places", place_of);
  const auto sums = c.buffer("sums", std::vector<long long>(kThreads, 10), out);
  c.launch("ranges_weighed_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(places),
           c.address(sums));
  c.rewritten("ranges_weighed_parent");
}

KLAP_CASE(ranges_of_extrema_stored, "an extremum of floating-point numbers is that of one part") {
  const auto x = c.input("x", elements<float>());
  const auto first = c.input("first", firsts());
  std::vector<float> most;
  std::vector<double> least;
  for (int t = 0; t < kThreads; ++t) {
    most.push_back(static_cast<float>(over_range(t, -5, [](int a, int b, int) { return std::max(a, b); })));
    least.push_back(over_range(t, 5000, [](int a, int b, int) { return std::min(a, b); }));
  }
  const auto high = c.buffer("high", std::vector<float>(kThreads, 10), most);
  const auto low = c.buffer("low", std::vector<double>(kThreads, 10), least);
  c.launch("ranges_of_extrema_stored_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(high),
           c.address(low));
  c.rewritten("ranges_of_extrema_stored_parent");
}

KLAP_CASE(ranges_scaled, "each part does what only the last one may do") {
  const auto x = c.input("x", elements<float>());
  const auto first = c.input("first", firsts());
  const auto scale = c.input("scale", std::vector<float>{2});
  const auto sums = c.buffer("sums", std::vector<float>(kThreads, 10),
                             added<float>(kThreads, own, [](int t) { return 2 * sum_of(t); }));
  const auto done = c.buffer("done", std::vector<int>{10}, std::vector<int>{10 + kThreads});
  c.launch("ranges_scaled_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(scale),
           c.address(sums), c.address(done));
  c.rewritten("ranges_scaled_parent");
}

KLAP_CASE(ranges_of_means, "a part takes its own range for the child's, or goes by its own sum") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  constexpr int kLimit = 10000;
  std::vector<int> out;
  int more = 10;
  for (int t = 0; t < kThreads; ++t) {
    out.push_back(elements_of(t) > 0 ? sum_of(t) / elements_of(t) : -1);
    more += sum_of(t) > kLimit ? 1 : 0;
  }
  const auto means = c.buffer("means", std::vector<int>(kThreads, 10), out);
  const auto large = c.buffer("large", std::vector<int>{10}, std::vector<int>{more});
  c.launch("ranges_of_means_parent", kGrid, kBlock, c.address(x), c.address(first), kLimit, c.address(means),
           c.address(large));
  c.rewritten("ranges_of_means_parent");
}

KLAP_CASE(ranges_of_means_counted, "a part takes the number of its elements for the child's") {
  stored<float>(c, "ranges_of_means_counted_parent", [](int t) {
    return elements_of(t) > 0 ? static_cast<float>(sum_of(t)) / static_cast<float>(elements_of(t)) : 10;
  });
}

KLAP_CASE(ranges_stored_by_warps, "a warp stores the sum of the whole block") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> out(size_t{2} * kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    over_range(t, 0, [&](int, int value, int at) {
      out[static_cast<size_t>(2 * t + at % 64 / 32)] += value;
      return 0;
    });
  }
  const auto sums = c.buffer("sums", std::vector<int>(size_t{2} * kThreads, 10), out);
  c.launch("ranges_stored_by_warps_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten("ranges_stored_by_warps_parent");
}

KLAP_CASE(ranges_stored_and_marked, "threads beyond the first warp do not write") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(sum_of(t));
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), out);
  const auto marks = c.buffer("marks", std::vector<int>(size_t{64} * kThreads, 10),
                              std::vector<int>(size_t{64} * kThreads, 64));
  c.launch("ranges_stored_and_marked_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums),
           c.address(marks));
  c.rewritten("ranges_stored_and_marked_parent");
}

KLAP_CASE(ranges_stored_around, "a thread wraps around at its first element in a block of another width") {
  stored(c, "ranges_stored_around_parent", [](int t) {
    return sum_around(begin_of(t), first_of(t + 1), 64, 0) + static_cast<int>(first_of(t + 1));
  });
}
KLAP_CASE(ranges_replaced, "a part writes what another part still reads") {
  std::vector<int> before = elements(), after = elements();
  const std::vector<int> first = firsts();
  for (int t = 0; t < kThreads; ++t) {
    const auto begin = static_cast<size_t>(first[static_cast<size_t>(t)]);
    if (elements_of(t) != 0) after[begin] = sum_of(t);
  }
  const auto x = c.buffer("x", before, after);
  const auto of = c.input("first", first);
  c.launch("ranges_replaced_parent", kGrid, kBlock, c.address(x), c.address(of));
  c.rewritten("ranges_replaced_parent");
}

KLAP_CASE(ranges_stored_for_one_size, "a block's part of a range is lost, or its threads do not agree") {
  stored(c, "ranges_stored_for_one_size_parent", [](int t) {
    const int last = t / 8 * 8 + 8;
    int sum = 0;
    for (int other = t; other < last; ++other) sum += sum_of(other);
    return 2 * sum + firsts()[static_cast<size_t>(last)];
  });
}

}  // namespace klap::differential

#endif
