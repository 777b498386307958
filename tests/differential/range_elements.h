// Ranges of elements for children that sum them up, and what they find (cases/ranges.cu,
// cases/ranges_stored.cu).
#pragma once

#include "case.h"

inline constexpr int kThreads = 32;  // of the parent's only block

// The elements of each child, none, one, around the 256 of a part, and many parts.
KLAP_SHARED static constexpr int elements_of(int t) {
  constexpr int kSizes[] = {0, 1, 63, 64, 65, 255, 256, 257, 511, 513, 2, 31, 32, 33, 1000, 3};
  return kSizes[t % 16];
}

// Where the range of thread t's child begins that would begin at `first`: every third one so close to 2^32
// that threads of its block wrap around.
KLAP_SHARED constexpr unsigned begin_around(int t, int first) {
  return t % 3 == 0 ? 0U - 4 * static_cast<unsigned>(t) : static_cast<unsigned>(first);
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

#else

namespace klap::differential {

inline constexpr Dim3 kGrid = {1, 1, 1}, kBlock = {kThreads, 1, 1};

// Hundreds of cases ask for these, so they are made once.
inline const std::vector<int>& firsts() {
  static const std::vector<int> made = [] {
    std::vector<int> first = {0};
    for (int t = 0; t < kThreads; ++t) first.push_back(first.back() + elements_of(t));
    return first;
  }();
  return made;
}

template <class Value = int>
const std::vector<Value>& elements() {
  static const std::vector<Value> made = [] {
    std::vector<Value> x;
    for (int e = 0; e < firsts().back(); ++e) x.push_back(static_cast<Value>(e * 37 % 101));
    return x;
  }();
  return made;
}

// What thread t's child finds: `more` adds an element, with its place in the range.
template <class Value, class More>
Value over_range(int t, Value begin, More more) {
  const std::vector<int>& x = elements();
  Value value = begin;
  for (int e = firsts()[static_cast<size_t>(t)]; e < firsts()[static_cast<size_t>(t) + 1]; ++e)
    value = more(value, x[static_cast<size_t>(e)], e - firsts()[static_cast<size_t>(t)]);
  return value;
}
inline int sum_of(int t) {
  return over_range(t, 0, [](int sum, int x, int) { return sum + x; });
}

// What a block of so many threads sums up, whose counters may wrap around. `lowest` is the number below all.
inline int sum_around(unsigned begin, unsigned end, unsigned threads, unsigned lowest) {
  const std::vector<int>& x = elements();
  int sum = 0;
  for (unsigned t = 0; t < threads; ++t) {
    for (unsigned e = begin + t; e - lowest < end - lowest; e += threads) sum += x[e % 1024];
  }
  return sum;
}
inline unsigned first_of(int t) { return static_cast<unsigned>(firsts()[static_cast<size_t>(t)]); }
inline unsigned begin_of(int t) { return begin_around(t, firsts()[static_cast<size_t>(t)]); }

// Cells that begin at 10, of which cell(t) gets what find(t) says.
template <class Value, class Cell, class Find>
std::vector<Value> added(size_t cells, Cell cell, Find find) {
  std::vector<Value> out(cells, Value{10});
  for (int t = 0; t < kThreads; ++t) out[static_cast<size_t>(cell(t))] += static_cast<Value>(find(t));
  return out;
}
inline int own(int t) { return t; }

// A parent that is given the elements, the ranges and one array of sums.
template <class Value = int, class Cell, class Find>
void summed(Builder& c, const char* parent, size_t cells, Cell cell, Find find) {
  const auto x = c.input("x", elements<Value>());
  const auto first = c.input("first", firsts());
  const auto sums = c.buffer("sums", std::vector<Value>(cells, Value{10}), added<Value>(cells, cell, find));
  c.launch(parent, kGrid, kBlock, c.address(x), c.address(first), c.address(sums));
  c.rewritten(parent);
}

}  // namespace klap::differential

#endif
