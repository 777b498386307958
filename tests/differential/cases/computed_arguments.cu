// Launches whose arguments take a branch, a loop or a called function to compute. Compilers ask for a
// launch's buffer before they do that, so control flow stands between the two calls of the launch.
#include "case.h"

constexpr int kThreads = 80;
constexpr int kRow = 40;
constexpr int kNodes = 8;

KLAP_SHARED static constexpr int common_divisor(int a, int b) {
  while (b != 0) {
    const int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
KLAP_SHARED static constexpr int leaves(int n) {
  int number = 1, next = 1;
  for (; n > 1; --n) {
    const int sum = number + next;
    number = next;
    next = sum;
  }
  return next;
}
KLAP_SHARED static constexpr int chosen(const int* choices, int t) {
  return choices[t] > 2 ? choices[choices[t]] + 1 : 7;
}
KLAP_SHARED static constexpr int bits_of(int n) {
  int bits = 0;
  for (; n > 0; n /= 2) bits += n % 2;
  return bits;
}

#ifdef __CUDACC__

__global__ void add(int* row, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(row + i, value * (i + 1));
}

extern "C" __global__ void loop_parent(int* cells) {
  const int t = threadIdx.x;
  add<<<2, 32>>>(cells + t * kRow, kRow, common_divisor(t + 1, 60));
}

extern "C" __global__ void branch_parent(int* cells, const int* choices) {
  const int t = threadIdx.x;
  add<<<2, 32>>>(cells + t * kRow, kRow, chosen(choices, t));
}

__device__ __noinline__ int bits_by_call(int n) { return bits_of(n); }

extern "C" __global__ void call_parent(int* cells) {
  const int t = threadIdx.x;
  if (t % 5 != 0) add<<<2, 32>>>(cells + t * kRow, kRow, bits_by_call(t));
}

extern "C" __global__ void tree_parent(int* cells, int first, int n) {
  if (n < 2) {
    cells[first] = first + 1;
    return;
  }
  tree_parent<<<1, 1, 0, cudaStreamFireAndForget>>>(cells, first, n - 1);
  tree_parent<<<1, 1, 0, cudaStreamFireAndForget>>>(cells, first + leaves(n - 1), n - 2);
}

// CUDA computes the arguments of a launch that it refuses, too, as of one without blocks.
extern "C" __global__ void refused_parent(int* cells, int* values, int n) {
  const int t = threadIdx.x;
  int value = n;
  add<<<t % 3 == 0 ? 0 : 2, 32>>>(cells + t * kRow, kRow, (value = common_divisor(t + 1, n)));
  values[t] = value;
}

extern "C" __global__ void ticket_parent(int* cells, int* tickets) {
  const int t = threadIdx.x;
  add<<<t % 3 == 0 ? 0 : 2, 32>>>(cells, kRow, 1 + (atomicAdd(tickets, 1) < 0));
}

#else

// Every element of a thread's row is that many times its place.
static std::vector<int> rows_of(const std::vector<int>& values) {
  std::vector<int> cells;
  for (int value : values) {
    for (int i = 0; i < kRow; ++i) cells.push_back(value * (i + 1));
  }
  return cells;
}

static uint32_t add_rows(klap::differential::Builder& c, const std::vector<int>& values) {
  return c.buffer("cells", std::vector<int>(values.size() * kRow), rows_of(values));
}

KLAP_CASE(computed_by_loop, "a loop between the calls of a launch is run by threads of other launches") {
  std::vector<int> values;
  for (int t = 0; t < kThreads; ++t) values.push_back(common_divisor(t + 1, 60));
  c.launch("loop_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(add_rows(c, values)));
  c.rewritten("loop_parent");
}

KLAP_CASE(computed_by_branch, "a branch between the calls of a launch takes its thread elsewhere") {
  std::vector<int> choices, values;
  for (int t = 0; t < kThreads; ++t) choices.push_back(t * 7 % kThreads);
  for (int t = 0; t < kThreads; ++t) values.push_back(chosen(choices.data(), t));
  const auto cells = add_rows(c, values), given = c.input("choices", choices);
  c.launch("branch_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(given));
  c.rewritten("branch_parent");
}

KLAP_CASE(computed_by_call, "a call between the calls of a launch changes what it is given") {
  std::vector<int> values;
  for (int t = 0; t < kThreads; ++t) values.push_back(t % 5 != 0 ? bits_of(t) : 0);
  c.launch("call_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(add_rows(c, values)));
  c.rewritten("call_parent");
}

KLAP_CASE(computed_in_recursion, "the second launch of a node gets the place of the first one") {
  std::vector<int> cells;
  for (int i = 0; i < leaves(kNodes); ++i) cells.push_back(i + 1);
  const auto made = c.buffer("cells", std::vector<int>(cells.size()), cells);
  c.launch("tree_parent", {1, 1, 1}, {1, 1, 1}, c.address(made), 0, kNodes);
  c.left_on_device("tree_parent", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(computed_and_refused, "the arguments of a launch that is refused are not computed") {
  constexpr int kNumber = 60;
  std::vector<int> launched, values;
  for (int t = 0; t < kThreads; ++t) {
    values.push_back(common_divisor(t + 1, kNumber));
    launched.push_back(t % 3 == 0 ? 0 : values.back());
  }
  const auto cells = add_rows(c, launched);
  const auto kept = c.buffer("values", std::vector<int>(kThreads), values);
  c.launch("refused_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(kept), kNumber);
  c.left("refused_parent", "not-understood");
}

KLAP_CASE(counted_and_refused, "a launch that is refused does not count in its arguments") {
  int launched = 0;
  for (int t = 0; t < kThreads; ++t) launched += t % 3 == 0 ? 0 : 1;
  const auto cells = add_rows(c, {launched});
  const auto tickets = c.buffer("tickets", std::vector<int>{0}, std::vector<int>{kThreads});
  c.launch("ticket_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(tickets));
  c.rewritten("ticket_parent");
}

#endif
