// Children that sum up a range of elements, each in a block of its own: they run as parts of their ranges,
// with a warp each, wherever blocks of a warp add up the same (src/analysis/ranges/range_split.h).
#include "case.h"

constexpr int kThreads = 32;  // of the parent's only block

// The elements of each child, none, one, around the 256 of a part, and many parts.
KLAP_SHARED static constexpr int elements_of(int t) {
  constexpr int kSizes[] = {0, 1, 63, 64, 65, 255, 256, 257, 511, 513, 2, 31, 32, 33, 1000, 3};
  return kSizes[t % 16];
}

#ifdef __CUDACC__

template <class Value>
__device__ Value warp_sum(Value value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  return value;
}
// Thread 0 gets the sum. A template is compiled into each kernel, and its variable stands outside of them.
template <class Value>
__device__ Value block_sum(Value value) {
  __shared__ Value of_warp[32];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) value = warp_sum(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : Value{0});
  return value;
}

template <class Value>
__global__ void sum_up(const Value* x, int begin, int end, Value* sum) {
  Value mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_by_shuffles_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_up<int><<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
extern "C" __global__ void ranges_of_reals_parent(const float* x, const int* first, float* sums) {
  const int t = threadIdx.x;
  sum_up<float><<<1, 128>>>(x, first[t], first[t + 1], sums + t);
}
extern "C" __global__ void ranges_of_doubles_parent(const double* x, const int* first, double* sums) {
  const int t = threadIdx.x;
  sum_up<double><<<1, 96>>>(x, first[t], first[t + 1], sums + t);
}
// One step at a time, as it stands.
__global__ void sum_up_rolled(const int* x, int begin, int end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += 3 * x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_rolled_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_up_rolled<<<1, 64>>>(x, first[t], first[t + 1], sums + t % 3);
}

// A tree of sums in shared memory, for blocks of any power of two.
__global__ void sum_up_by_tree(const int* x, int begin, int end, int* sum) {
  __shared__ int of_thread[256];
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e] * x[e];
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, of_thread[0]);
}
extern "C" __global__ void ranges_by_tree_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_up_by_tree<<<1, 128>>>(x, first[t], first[t + 1], sums + t);
}
// The same tree for blocks of 64 threads only: a block of one warp would read what no thread has written.
__global__ void sum_up_by_tree_of_64(const int* x, int begin, int end, int* sum) {
  __shared__ int of_thread[64];
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  of_thread[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned width = 32; width > 0; width /= 2) {
    if (threadIdx.x < width) of_thread[threadIdx.x] += of_thread[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, of_thread[0]);
}
extern "C" __global__ void ranges_for_one_size_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_up_by_tree_of_64<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}

// The same for a child that stores its sum.
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

// Each thread adds its own sum to memory.
__global__ void add_each(const int* x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine ^= x[e] * 7;
  atomicXor(sum, mine);
}
extern "C" __global__ void ranges_of_threads_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  add_each<<<1, 96>>>(x, first[t], first[t + 1], sums + t);
}

// The largest and the smallest element.
__global__ void find_extrema(const int* x, int begin, int end, int* most, int* least) {
  int high = -5, low = 5000;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x)) {
    high = max(high, x[e]);
    low = min(low, x[e]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    high = max(high, __shfl_xor_sync(~0u, high, distance));
    low = min(low, __shfl_xor_sync(~0u, low, distance));
  }
  if (threadIdx.x % 32 == 0) {
    atomicMax(most, high);
    atomicMin(least, low);
  }
}
extern "C" __global__ void ranges_extrema_parent(const int* x, const int* first, int* most, int* least) {
  const int t = threadIdx.x;
  find_extrema<<<1, 64>>>(x, first[t], first[t + 1], most + t, least + t);
}

// Two sums at once, by an operation of the warp.
__global__ void sum_up_twice(const int* x, int begin, int end, int* sum, int* count) {
  int mine = 0, odd = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x)) {
    mine += x[e];
    odd += x[e] % 2;
  }
  mine = static_cast<int>(__reduce_add_sync(~0u, static_cast<unsigned>(mine)));
  odd = static_cast<int>(__reduce_add_sync(~0u, static_cast<unsigned>(odd)));
  if (threadIdx.x % 32 == 0) {
    atomicAdd(sum, mine);
    atomicAdd(count, odd);
  }
}
extern "C" __global__ void ranges_of_two_sums_parent(const int* x, const int* first, int* sums, int* counts) {
  const int t = threadIdx.x;
  sum_up_twice<<<1, 64>>>(x, first[t], first[t + 1], sums + t, counts + t % 5);
}

// What must stay one block: it counts blocks, looks at where its range begins, or weighs what it has found.
__global__ void sum_and_count(const int* x, int begin, int end, int* sum, int* blocks) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x != 0) return;
  atomicAdd(sum, mine);
  atomicAdd(blocks, 1);
}
extern "C" __global__ void ranges_counted_parent(const int* x, const int* first, int* sums, int* blocks) {
  const int t = threadIdx.x;
  sum_and_count<<<1, 64>>>(x, first[t], first[t + 1], sums + t, blocks);
}
__global__ void sum_by_place(const int* x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e] * (e - begin + 1);
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_by_place_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_by_place<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
__global__ void sum_squared(const int* x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine * mine);
}
extern "C" __global__ void ranges_squared_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_squared<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
__global__ void sum_to_threads(const int* x, int begin, int end, int* sums) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  atomicAdd(sums + threadIdx.x, mine);
}
extern "C" __global__ void ranges_to_threads_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_to_threads<<<1, 64>>>(x, first[t], first[t + 1], sums);
}

// The same for children that are given pointers to their elements and count them from 0, with one loop and
// with two.
template <class Value>
__global__ void sum_counted(const Value* x, int count, Value* sum) {
  Value mine = 0;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x)) mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_from_zero_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_counted<int><<<1, 128>>>(x + first[t], first[t + 1] - first[t], sums + t);
}
__global__ void sum_counted_rolled(const int* x, int count, int* sum) {
  __shared__ int of_thread[64];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  int mine = 0;
#pragma unroll 1
  for (int e = thread; e < count; e += threads) mine += x[e] * (e % 7);
  of_thread[thread] = mine;
  __syncthreads();
  for (int width = threads / 2; width > 0; width /= 2) {
    if (thread < width) of_thread[thread] += of_thread[thread + width];
    __syncthreads();
  }
  if (thread == 0) atomicAdd(sum, of_thread[0]);
}
extern "C" __global__ void ranges_by_element_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_counted_rolled<<<1, 64>>>(x + first[t], first[t + 1] - first[t], sums + t % 4);
}

// Ends and elements without signs, of children that are given both ends or their number.
__global__ void sum_unsigned(const int* x, unsigned begin, unsigned end, int* sum) {
  int mine = 0;
  for (unsigned e = begin + threadIdx.x; e < end; e += blockDim.x) mine += x[e] * static_cast<int>(e % 5);
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_unsigned_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_unsigned<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}
__global__ void sum_unsigned_counted(const int* x, unsigned count, int* sum) {
  int mine = 0;
  for (unsigned e = threadIdx.x; e < count; e += blockDim.x) mine += x[e];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_unsigned_counted_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_unsigned_counted<<<1, 96>>>(x + first[t], first[t + 1] - first[t], sums + t);
}
// Elements above 2^31, of an array whose beginning lies so far below the one that is given, modulo 2^32.
extern "C" __global__ void ranges_above_half_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  constexpr unsigned kFar = 0xffffe000u;
  sum_unsigned<<<1, 64>>>(x - kFar, first[t] + kFar, first[t + 1] + kFar, sums + t);
}

// Ranges that begin below 0, of an array whose middle is given.
extern "C" __global__ void ranges_below_zero_parent(const int* x, const int* first, int* sums, int middle) {
  const int t = threadIdx.x;
  sum_up<int><<<1, 64>>>(x + middle, first[t] - middle, first[t + 1] - middle, sums + t);
}

// The sums lie behind the elements in the same array, so nothing tells that no part reads what another adds
// to.
extern "C" __global__ void ranges_in_one_array_parent(int* x, const int* first, int end) {
  const int t = threadIdx.x;
  sum_up<int><<<1, 64, 0, cudaStreamFireAndForget>>>(x, first[t], first[t + 1], x + end + t);
}

// Children that do more with their sum than to add it to memory: their parts must be joined.
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

#else

#include <algorithm>

namespace klap::differential {
namespace {

constexpr Dim3 kGrid = {1, 1, 1}, kBlock = {kThreads, 1, 1};

std::vector<int> firsts() {
  std::vector<int> first = {0};
  for (int t = 0; t < kThreads; ++t) first.push_back(first.back() + elements_of(t));
  return first;
}

template <class Value = int>
std::vector<Value> elements() {
  std::vector<Value> x;
  for (int e = 0; e < firsts().back(); ++e) x.push_back(static_cast<Value>(e * 37 % 101));
  return x;
}

// What thread t's child finds: `more` adds an element, with its place in the range.
template <class Value, class More>
Value over_range(int t, Value begin, More more) {
  const std::vector<int> x = elements();
  Value value = begin;
  for (int e = firsts()[static_cast<size_t>(t)]; e < firsts()[static_cast<size_t>(t) + 1]; ++e)
    value = more(value, x[static_cast<size_t>(e)], e - firsts()[static_cast<size_t>(t)]);
  return value;
}
int sum_of(int t) {
  return over_range(t, 0, [](int sum, int x, int) { return sum + x; });
}

// Cells that begin at 10, of which cell(t) gets what find(t) says.
template <class Value, class Cell, class Find>
std::vector<Value> added(size_t cells, Cell cell, Find find) {
  std::vector<Value> out(cells, Value{10});
  for (int t = 0; t < kThreads; ++t) out[static_cast<size_t>(cell(t))] += static_cast<Value>(find(t));
  return out;
}
int own(int t) { return t; }

// A parent that is given the elements, the ranges and one array of sums.
template <class Value = int, class Cell, class Find>
void summed(Builder& c, const char* parent, size_t cells, Cell cell, Find find) {
  const auto x = c.input("x", elements<Value>());
  const auto first = c.input("first", firsts());
  const auto sums = c.buffer("sums", std::vector<Value>(cells, Value{10}), added<Value>(cells, cell, find));
  c.launch(parent, kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten(parent);
}

}  // namespace

KLAP_CASE(ranges_by_shuffles, "a part of a range is lost, or summed up twice") {
  summed(c, "ranges_by_shuffles_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_of_reals, "a part of a range of floating-point numbers is lost") {
  summed<float>(c, "ranges_of_reals_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_of_doubles, "half of a sum's bits comes from another lane") {
  summed<double>(c, "ranges_of_doubles_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_rolled, "an element is lost where a part ends") {
  summed(
      c, "ranges_rolled_parent", 3, [](int t) { return t % 3; }, [](int t) { return 3 * sum_of(t); });
}
KLAP_CASE(ranges_by_tree, "warps of one block share memory that each of them needs") {
  summed(c, "ranges_by_tree_parent", kThreads, own,
         [](int t) { return over_range(t, 0, [](int sum, int x, int) { return sum + x * x; }); });
}
KLAP_CASE(ranges_for_one_size, "a sum for blocks of one size runs in blocks of another") {
  summed(c, "ranges_for_one_size_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_stored_for_one_size, "a block's part of a range is lost, or its threads do not agree") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  const std::vector<int> at = firsts();
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) {
    const int last = t / 8 * 8 + 8;
    int sum = 0;
    for (int other = t; other < last; ++other) sum += sum_of(other);
    out.push_back(2 * sum + at[static_cast<size_t>(last)]);
  }
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), out);
  c.launch("ranges_stored_for_one_size_parent", kGrid, kBlock, c.address(x), c.address(first),
           c.address(sums));
  c.rewritten("ranges_stored_for_one_size_parent");
}
KLAP_CASE(ranges_by_place, "an element is taken to be at another place of its range") {
  summed(c, "ranges_by_place_parent", kThreads, own,
         [](int t) { return over_range(t, 0, [](int sum, int x, int at) { return sum + x * (at + 1); }); });
}
KLAP_CASE(ranges_squared, "a sum of squares takes the place of the square of a sum") {
  summed(c, "ranges_squared_parent", kThreads, own, [](int t) { return sum_of(t) * sum_of(t); });
}

KLAP_CASE(ranges_from_zero, "a part of a range that is counted from 0 begins at 0") {
  summed(c, "ranges_from_zero_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_by_element, "a thread takes another thread's number for its own") {
  summed(
      c, "ranges_by_element_parent", 4, [](int t) { return t % 4; },
      [](int t) { return over_range(t, 0, [](int sum, int x, int at) { return sum + x * (at % 7); }); });
}

KLAP_CASE(ranges_of_threads, "a thread's own sum is lost") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> out(kThreads, 10);
  for (int t = 0; t < kThreads; ++t)
    out[static_cast<size_t>(t)] =
        over_range(t, 10, [](int sum, int value, int) { return sum ^ (value * 7); });
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), out);
  c.launch("ranges_of_threads_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten("ranges_of_threads_parent");
}

KLAP_CASE(ranges_to_threads, "elements go to the sums of other threads") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> out(64, 10);
  for (int t = 0; t < kThreads; ++t) {
    over_range(t, 0, [&](int, int value, int at) {
      out[static_cast<size_t>(at % 64)] += value;
      return 0;
    });
  }
  const auto sums = c.buffer("sums", std::vector<int>(64, 10), out);
  c.launch("ranges_to_threads_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten("ranges_to_threads_parent");
}

KLAP_CASE(ranges_extrema, "an extremum is not that of all parts") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<int> high(kThreads), low(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    high[static_cast<size_t>(t)] = over_range(t, 10, [](int a, int b, int) { return std::max(a, b); });
    low[static_cast<size_t>(t)] = over_range(t, 5000, [](int a, int b, int) { return std::min(a, b); });
  }
  const auto most = c.buffer("most", std::vector<int>(kThreads, 10), high);
  const auto least = c.buffer("least", std::vector<int>(kThreads, 5000), low);
  c.launch("ranges_extrema_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(most),
           c.address(least));
  c.rewritten("ranges_extrema_parent");
}

KLAP_CASE(ranges_of_two_sums, "one of two sums goes to the other one's place") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  const auto odd_of = [](int t) {
    return over_range(t, 0, [](int count, int value, int) { return count + value % 2; });
  };
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), added<int>(kThreads, own, sum_of));
  const auto counts = c.buffer("counts", std::vector<int>(5, 10),
                               added<int>(
                                   5, [](int t) { return t % 5; }, odd_of));
  c.launch("ranges_of_two_sums_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums),
           c.address(counts));
  c.rewritten("ranges_of_two_sums_parent");
}

KLAP_CASE(ranges_counted, "a child that counts itself is counted in parts") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), added<int>(kThreads, own, sum_of));
  const auto blocks = c.buffer("blocks", std::vector<int>{10}, std::vector<int>{10 + kThreads});
  c.launch("ranges_counted_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums),
           c.address(blocks));
  c.rewritten("ranges_counted_parent");
}

// The sum of thread t's elements, each times its number from `from` on, modulo 5.
int by_number(int t, unsigned from) {
  const unsigned begin = static_cast<unsigned>(firsts()[static_cast<size_t>(t)]) + from;
  return over_range(t, 0, [&](int sum, int x, int at) {
    return sum + x * static_cast<int>((begin + static_cast<unsigned>(at)) % 5);
  });
}
KLAP_CASE(ranges_unsigned, "a part of a range without signs is lost") {
  summed(c, "ranges_unsigned_parent", kThreads, own, [](int t) { return by_number(t, 0); });
}
KLAP_CASE(ranges_unsigned_counted, "a part of a range that is counted without signs begins at 0") {
  summed(c, "ranges_unsigned_counted_parent", kThreads, own, sum_of);
}
KLAP_CASE(ranges_above_half, "a large number without a sign is taken for one below 0") {
  summed(c, "ranges_above_half_parent", kThreads, own, [](int t) { return by_number(t, 0xffffe000U); });
}

KLAP_CASE(ranges_below_zero, "a range that begins below 0 is cut at the wrong places") {
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), added<int>(kThreads, own, sum_of));
  c.launch("ranges_below_zero_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(sums), 1300);
  c.rewritten("ranges_below_zero_parent");
}

// A parent whose children store their sums.
template <class Value>
void stored(Builder& c, const char* parent) {
  const auto x = c.input("x", elements<Value>());
  const auto first = c.input("first", firsts());
  std::vector<Value> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(static_cast<Value>(sum_of(t)));
  const auto sums = c.buffer("sums", std::vector<Value>(kThreads, 10), out);
  c.launch(parent, kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten(parent);
}
KLAP_CASE(ranges_stored, "a part's sum is stored, and not the child's") {
  stored<int>(c, "ranges_stored_parent");
}
KLAP_CASE(ranges_of_reals_stored, "a part's sum of floating-point numbers is stored") {
  stored<float>(c, "ranges_of_reals_stored_parent");
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
  const auto x = c.input("x", elements());
  const auto first = c.input("first", firsts());
  std::vector<float> out;
  for (int t = 0; t < kThreads; ++t)
    out.push_back(elements_of(t) > 0 ? static_cast<float>(sum_of(t)) / static_cast<float>(elements_of(t))
                                     : 10);
  const auto means = c.buffer("means", std::vector<float>(kThreads, 10), out);
  c.launch("ranges_of_means_counted_parent", kGrid, kBlock, c.address(x), c.address(first), c.address(means));
  c.rewritten("ranges_of_means_counted_parent");
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

KLAP_CASE(ranges_in_one_array, "a part reads what another part adds to") {
  std::vector<int> before = elements(), after = elements();
  const auto end = static_cast<int>(before.size());
  for (int t = 0; t < kThreads; ++t) {
    before.push_back(10);
    after.push_back(10 + sum_of(t));
  }
  const auto x = c.buffer("x", before, after);
  const auto first = c.input("first", firsts());
  c.launch("ranges_in_one_array_parent", kGrid, kBlock, c.address(x), c.address(first), end);
  c.rewritten("ranges_in_one_array_parent");
}

}  // namespace klap::differential

#endif
