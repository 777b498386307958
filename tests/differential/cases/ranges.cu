// Children that sum up a range of elements, each in a block of its own: they run as parts of their ranges,
// with a warp each, wherever blocks of a warp add up the same (src/analysis/ranges/range_split.h).
#include "range_elements.h"

#ifdef __CUDACC__

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
// The child may read what the parent has just written as data that nobody writes.
__global__ void sum_up_fresh(const int* __restrict__ x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += __ldg(x + e);
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_fresh_parent(int* fresh, const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  for (int e = first[t]; e < first[t + 1]; ++e) fresh[e] = x[e];
  sum_up_fresh<<<1, 64>>>(fresh, first[t], first[t + 1], sums + t);
}

// One range with more than 2^16 parts of 32 elements, between short ones.
__global__ void sum_up_long(const int* x, int begin, int end, int* sum) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e % 1024];
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_long_parent(const int* x, int longest, int* sums) {
  const int t = threadIdx.x;
  sum_up_long<<<1, 64>>>(x, 3 * t, t == 3 ? longest : 60 * t, sums + t);
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

// Two variables of one name, each in a scope of its own. All of the second one stays 7.
__device__ __forceinline__ unsigned first_variable() {
  unsigned at;
  asm volatile("{ .shared .align 4 .b8 same[512]; mov.u32 %0, same; }" : "=r"(at));
  return at;
}
__device__ __forceinline__ unsigned second_variable() {
  unsigned at;
  asm volatile("{ .shared .align 4 .b8 same[512]; mov.u32 %0, same; }" : "=r"(at));
  return at;
}
__device__ __forceinline__ void store_shared(unsigned at, int value) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(value) : "memory");
}
__global__ void sum_beside(const int* x, int begin, int end, int* out) {
  int mine = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x))
    mine += x[e];
  const unsigned first = first_variable(), second = second_variable();
  store_shared(second + 4 * threadIdx.x, 7);
  __syncthreads();
  store_shared(first + 4 * threadIdx.x, mine);
  __syncthreads();
  int found;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(found) : "r"(second + 4 * threadIdx.x) : "memory");
  atomicAdd(out, found);
}
extern "C" __global__ void ranges_of_one_name_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_beside<<<1, 64>>>(x, first[t], first[t + 1], sums + t);
}

// Threads wrap around before their first element, so which elements are visited depends on the block's width.
__global__ void sum_around(const int* x, unsigned begin, unsigned end, int* sum) {
  int mine = 0;
  for (unsigned e = begin + threadIdx.x; e < end; e += blockDim.x) mine += x[e % 1024];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_around_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_around<<<1, 128>>>(x, begin_around(t, first[t]), first[t + 1], sums + t);
}
// Another parent launches the same child in blocks of another width. Its parts step by that width.
extern "C" __global__ void ranges_around_wider_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  sum_around<<<1, 256>>>(x, begin_around(t, first[t]), first[t + 1], sums + t);
}
// The same beyond the largest number with a sign, in a rolled loop.
__global__ void sum_around_signed(const int* x, int begin, int end, int* sum) {
  int mine = 0;
#pragma unroll 1
  for (int e = static_cast<int>(begin + threadIdx.x); e < end; e = static_cast<int>(e + blockDim.x))
    mine += x[e & 1023];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
extern "C" __global__ void ranges_around_signed_parent(const int* x, const int* first, int* sums) {
  const int t = threadIdx.x;
  constexpr int kMost = 0x7fffffff;
  sum_around_signed<<<1, 96>>>(x, t % 3 == 0 ? kMost - 2 * t : first[t],
                               t % 3 == 0 ? first[t + 1] - kMost - 1 : first[t + 1], sums + t);
}

#else

#include <algorithm>

namespace klap::differential {
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

KLAP_CASE(ranges_fresh, "a part reads what was there before its parent wrote") {
  const std::vector<int> all = elements();
  const auto fresh = c.buffer("fresh", std::vector<int>(all.size()), all);
  const auto x = c.input("x", all);
  const auto first = c.input("first", firsts());
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), added<int>(kThreads, own, sum_of));
  c.launch("ranges_fresh_parent", kGrid, kBlock, c.address(fresh), c.address(x), c.address(first),
           c.address(sums));
  c.rewritten("ranges_fresh_parent");
}

KLAP_CASE(ranges_long, "a part of a very long range is lost") {
  constexpr int kLongest = 32 * 65536 + 77;
  std::vector<int> ring(1024), out(kThreads, 10);
  for (int e = 0; e < 1024; ++e) ring[static_cast<size_t>(e)] = e * 37 % 101;
  for (int t = 0; t < kThreads; ++t) {
    for (int e = 3 * t; e < (t == 3 ? kLongest : 60 * t); ++e)
      out[static_cast<size_t>(t)] += ring[static_cast<size_t>(e % 1024)];
  }
  const auto x = c.input("x", ring);
  const auto sums = c.buffer("sums", std::vector<int>(kThreads, 10), out);
  c.launch("ranges_long_parent", kGrid, kBlock, c.address(x), kLongest, c.address(sums));
  c.rewritten("ranges_long_parent");
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

KLAP_CASE(ranges_around, "a thread wraps around at its first element in a block of another width") {
  summed(c, "ranges_around_parent", kThreads, own,
         [](int t) { return sum_around(begin_of(t), first_of(t + 1), 128, 0); });
}
KLAP_CASE(ranges_around_wider, "a child's parts step by the width with which another parent launches it") {
  summed(c, "ranges_around_wider_parent", kThreads, own,
         [](int t) { return sum_around(begin_of(t), first_of(t + 1), 256, 0); });
}
KLAP_CASE(ranges_around_signed, "a thread wraps around at its first element, below 0") {
  summed(c, "ranges_around_signed_parent", kThreads, own, [](int t) {
    constexpr unsigned kLowest = 0x80000000U;
    const bool is_around = t % 3 == 0;
    const unsigned begin = is_around ? kLowest - 1 - 2 * static_cast<unsigned>(t) : first_of(t);
    return sum_around(begin, is_around ? first_of(t + 1) + kLowest : first_of(t + 1), 96, kLowest);
  });
}

KLAP_CASE(ranges_of_one_name, "two variables of one name are taken for one") {
  summed(c, "ranges_of_one_name_parent", kThreads, own, [](int) { return 7 * 64; });
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
