// Children with loops that only load and compute, several rounds of which stand in a row where another round
// is known to follow: of any number of rounds, fewer than in a row, multiples of that and their neighbours.
#include <cstddef>

#include "case.h"

constexpr int kThreads = 64;  // of a parent's grid, in blocks of 32; each has a row
constexpr int kChild = 32;
constexpr int kLongest = 1100;

KLAP_SHARED static constexpr int length_of(int row) {
  constexpr int kLengths[] = {0, 1, 31, 32, 33, 127, 128, 129, 255, 256, 511, 512, 513, 640, 1024, 1100};
  return kLengths[row % 16];
}

#ifdef __CUDACC__

__device__ int row_of_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// Sums along a row; each thread has every 32nd entry.
__global__ void sum_gathered(const int* columns, const int* x, int* y, int row, int n) {
  int sum = 0;
  for (int e = static_cast<int>(threadIdx.x); e < n; e += static_cast<int>(blockDim.x)) sum += x[columns[e]];
  atomicAdd(y + row, sum);
}
extern "C" __global__ void straight_gathered_parent(const int* columns, const int* x, int* y) {
  const int row = row_of_thread();
  sum_gathered<<<1, kChild>>>(columns + row * kLongest, x, y, row, length_of(row));
}

// The order of the additions shows: each takes part in the next.
__global__ void fold(const int* values, unsigned* y, int n) {
  unsigned folded = threadIdx.x;
  for (int i = n - 1 - static_cast<int>(threadIdx.x); i >= 0; i -= kChild)
    folded = folded * 31u + static_cast<unsigned>(values[i]);
  y[threadIdx.x] = folded;
}
extern "C" __global__ void straight_folded_parent(const int* values, unsigned* y) {
  const int row = row_of_thread();
  fold<<<1, kChild>>>(values + row * kLongest, y + row * kChild, length_of(row));
}

// Up to a place rather than a number, and with a second counter.
__global__ void sum_to_place(const int* value, const int* end, unsigned* y) {
  unsigned sum = 0, weight = 1;
  while (value < end) {
    sum += weight * static_cast<unsigned>(*value);
    weight = weight * 5 + threadIdx.x;
    value += kChild;
  }
  *(y + threadIdx.x) = sum;
}
extern "C" __global__ void straight_to_place_parent(const int* values, unsigned* y) {
  const int row = row_of_thread();
  const int* const begin = values + row * kLongest;
  sum_to_place<<<1, kChild>>>(begin, begin + length_of(row), y + row * kChild);
}

// Whether there is another round, memory says.
__global__ void sum_of_list(const int* next, const int* values, int* y, int first) {
  int sum = 0;
  for (int at = first + static_cast<int>(threadIdx.x); at >= 0; at = next[at]) sum += values[at];
  y[threadIdx.x] = sum;
}
extern "C" __global__ void straight_list_parent(const int* next, const int* values, int* y) {
  const int row = row_of_thread();
  sum_of_list<<<1, kChild>>>(next, values, y + row * kChild, row * kLongest);
}

#else

namespace {

constexpr klap::differential::Dim3 kGrid = {kThreads / 32, 1, 1}, kBlock = {32, 1, 1};
constexpr size_t kAll = static_cast<size_t>(kThreads) * kLongest;

std::vector<int> numbers(size_t count, int below) {
  std::vector<int> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int>(i * 7919 % 10007) % below;
  return out;
}

// What the threads of all children come to: one value each of a function of values, row length and thread.
template <class Value, class Function>
std::vector<Value> of_threads(const std::vector<int>& values, const Function& function) {
  std::vector<Value> out;
  for (int row = 0; row < kThreads; ++row) {
    for (int thread = 0; thread < kChild; ++thread)
      out.push_back(function(values.data() + static_cast<size_t>(row) * kLongest, length_of(row), thread));
  }
  return out;
}

// A parent that takes the values and where the threads of its children store what they come to.
template <class Function>
void summed(klap::differential::Builder& c, const std::string& parent, const Function& function) {
  const std::vector<int> values = numbers(kAll, 1000);
  const auto sums = of_threads<unsigned>(values, function);
  const auto in = c.input("values", values);
  const auto y = c.buffer("y", std::vector<unsigned>(sums.size()), sums);
  c.launch(parent, kGrid, kBlock, c.address(in), c.address(y));
  c.rewritten(parent);
}

}  // namespace

KLAP_CASE(straight_gathered, "a round of those that stand in a row is lost, or runs twice") {
  const std::vector<int> columns = numbers(kAll, 500), x = numbers(500, 1000);
  std::vector<int> sums(kThreads);
  for (int row = 0; row < kThreads; ++row) {
    for (int e = 0; e < length_of(row); ++e)
      sums[static_cast<size_t>(row)] +=
          x[static_cast<size_t>(columns[static_cast<size_t>(row) * kLongest + static_cast<size_t>(e)])];
  }
  const auto entries = c.input("columns", columns), vector = c.input("x", x);
  const auto y = c.buffer("y", std::vector<int>(kThreads), sums);
  c.launch("straight_gathered_parent", kGrid, kBlock, c.address(entries), c.address(vector), c.address(y));
  c.rewritten("straight_gathered_parent");
}

KLAP_CASE(straight_folded, "rounds that stand in a row run in another order") {
  summed(c, "straight_folded_parent", [](const int* row, int n, int thread) {
    unsigned all = static_cast<unsigned>(thread);
    for (int i = n - 1 - thread; i >= 0; i -= kChild) all = all * 31u + static_cast<unsigned>(row[i]);
    return all;
  });
}

KLAP_CASE(straight_to_place, "what only some rounds in a row count is lost") {
  summed(c, "straight_to_place_parent", [](const int* row, int n, int thread) {
    unsigned sum = 0, weight = 1;
    for (int i = 0; i < n; i += kChild) {
      sum += weight * static_cast<unsigned>(row[i]);
      weight = weight * 5 + static_cast<unsigned>(thread);
    }
    return sum;
  });
}

KLAP_CASE(straight_list, "a loop that memory ends goes on") {
  const std::vector<int> values = numbers(kAll, 1000);
  std::vector<int> next(kAll, -1);
  for (size_t row = 0; row < kThreads; ++row) {
    for (size_t i = 0; i + kChild < static_cast<size_t>(length_of(static_cast<int>(row))); ++i)
      next[row * kLongest + i] = static_cast<int>(row * kLongest + i + kChild);
  }
  const auto sums = of_threads<int>(values, [](const int* row, int n, int thread) {
    int sum = row[thread];
    for (int i = thread + kChild; i < n; i += kChild) sum += row[i];
    return sum;
  });
  const auto links = c.input("next", next), in = c.input("values", values);
  const auto y = c.buffer("y", std::vector<int>(sums.size()), sums);
  c.launch("straight_list_parent", kGrid, kBlock, c.address(links), c.address(in), c.address(y));
  c.rewritten("straight_list_parent");
}

#endif
