// Launches that lanes of a warp share where nothing is put off: in loops, from several places, in blocks and
// with shared memory that differ between lanes, beside launches that are refused or cannot be shared.
#include "case.h"

constexpr int kThreads = 96;
constexpr int kRounds = 5;
constexpr int kInvalidConfiguration = 9;
constexpr int kNumbers = 40;

struct Numbers {
  int value[kNumbers];  // 160 bytes: 23 children fit into one launch
};

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
// Rounds of different length, so that lanes come to the site in different rounds and in changing company.
extern "C" __global__ void rounds_parent(int* cells) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i <= t % kRounds; ++i) {
    if ((t + i) % 3 == 0) atomicAdd(cells + kThreads + i, 1);
    set<<<1 + i % 2, 32>>>(cells + t, 10 * t + i);
  }
}

extern "C" __global__ void own_stream_parent(int* cells) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i <= t % kRounds; ++i) set<<<1, 32, 0, cudaStreamPerThread>>>(cells + t, 10 * t + i);
}

// Lanes in different rounds meet in a cell.
__global__ void add_plainly(int* cell) {
  if (threadIdx.x == 0) *cell = *cell + 1;
}
extern "C" __global__ void meeting_rounds_parent(int* cells) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < kRounds; ++i) {
    if ((t + i) % 2 == 0) add_plainly<<<1, 32>>>(cells + (t + i * 7) % kThreads);
  }
}

// What a round's children wrote is read by the children of the next.
__global__ void move(int* to, const int* from, int t) {
  if (threadIdx.x == 0) atomicAdd(to + (t + 1) % kThreads, from[t]);
}
extern "C" __global__ void barrier_rounds_parent(int* a, int* b) {
#pragma unroll 1
  for (int i = 0; i < kRounds; ++i) {
    move<<<1, 32>>>(i % 2 ? a : b, i % 2 ? b : a, threadIdx.x);
    __syncthreads();
  }
}

__global__ void sum_block(int* cell, int x, int y, int z) {
  const bool as_asked = blockDim.x == x && blockDim.y == y && blockDim.z == z;
  atomicAdd(cell, as_asked ? 1 + static_cast<int>(threadIdx.x + threadIdx.y + threadIdx.z) : -1000);
}
extern "C" __global__ void blocks_parent(int* cells) {
  const int t = threadIdx.x, x = 1 + t % 7, y = 1 + t / 7 % 3, z = 1 + t % 2;
  sum_block<<<dim3(1 + t % 4, 1 + t % 3), dim3(x, y, z)>>>(cells + t, x, y, z);
}

__global__ void add_numbers(int* cell, Numbers numbers) {
  int sum = 0;
  for (int i = 0; i < kNumbers; ++i) sum += numbers.value[(i + threadIdx.x) % kNumbers];
  atomicAdd(cell, sum);
}
extern "C" __global__ void many_bytes_parent(int* cells) {
  const int t = threadIdx.x;
  if (t % 11 == 5) return;
  Numbers numbers;
#pragma unroll
  for (int i = 0; i < kNumbers; ++i) numbers.value[i] = t * i;
  add_numbers<<<2, 16>>>(cells + t, numbers);
}

__global__ void count_after_barrier(int* cell, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  const int rest = n - static_cast<int>(threadIdx.x) / 32 * 32;  // threads from this warp on
  const int sum = __reduce_add_sync(rest >= 32 ? 0xffffffffU : (1U << rest) - 1, 1);
  atomicAdd(cell, sum);
  __syncthreads();
  if (threadIdx.x == 0) cell[1] = *reinterpret_cast<volatile int*>(cell) + 1;
}
extern "C" __global__ void meeting_parent(int* cells) {
  const int t = threadIdx.x;
  count_after_barrier<<<1, 64>>>(cells + 2 * t, 1 + t % 64);
}

// One lane in three is refused, and some lanes launch alone.
extern "C" __global__ void codes_parent(int* cells, int* codes) {
  const int t = threadIdx.x;
  for (int i = 0; i < 2; ++i) {
    set<<<t % 3 == 1 ? 0 : 2, 32>>>(cells + t, t + i);
    codes[4 * t + 2 * i] = cudaPeekAtLastError();
    if (i == 1) codes[4 * t + 3] = cudaGetLastError();
  }
  codes[4 * t + 1] = cudaGetLastError();
}

extern "C" __global__ void other_calls_parent(int* cells, int* copy) {
  const int t = threadIdx.x;
  set<<<1, 32>>>(cells + t, t * t);
  cudaMemcpyAsync(copy + t, cells + t, sizeof(int), cudaMemcpyDeviceToDevice, 0);
}

#else

namespace {

using klap::differential::Builder;

template <class Expected>
void cells_case(Builder& c, const char* parent, int count, const Expected& expected_of, const char* left,
                const char* by_warp = "rewritten") {
  std::vector<int> after;
  for (int i = 0; i < count; ++i) after.push_back(expected_of(i));
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  if (left == nullptr) {
    c.rewritten(parent);
  } else {
    c.left(parent, left);
  }
  c.by_warp(by_warp);
}

// The same of a launch in a loop, which only a consumer that the host enqueues keeps in order.
template <class Expected>
void loop_case(Builder& c, const char* parent, int count, const Expected& expected_of, const char* left,
               const char* by_warp = "rewritten") {
  cells_case(c, parent, count, expected_of, left, by_warp);
}

}  // namespace

KLAP_CASE(shared_rounds, "lanes in different rounds of a loop get each other's launches, or out of order") {
  loop_case(
      c, "rounds_parent", kThreads + kRounds,
      [](int cell) {
        if (cell < kThreads) return 10 * cell + cell % kRounds;
        int sum = 0;
        for (int t = 0; t < kThreads; ++t)
          sum += cell - kThreads <= t % kRounds && (t + cell - kThreads) % 3 == 0;
        return sum;
      },
      nullptr);
}

KLAP_CASE(shared_own_stream, "launches of a thread into its own stream run in the streams of others") {
  loop_case(
      c, "own_stream_parent", kThreads, [](int t) { return 10 * t + t % kRounds; }, nullptr,
      "stream-unsupported");
}

KLAP_CASE(shared_meeting_rounds, "children of lanes in different rounds update the same cell at once") {
  loop_case(
      c, "meeting_rounds_parent", kThreads,
      [](int cell) {
        int sum = 0;
        for (int t = 0; t < kThreads; ++t)
          for (int i = 0; i < kRounds; ++i) sum += (t + i) % 2 == 0 && (t + i * 7) % kThreads == cell;
        return sum;
      },
      nullptr, "order-kept");
}

KLAP_CASE(shared_barrier_rounds, "children of one round run beside those of the next") {
  std::vector<int> a, b, empty(kThreads);
  for (int t = 0; t < kThreads; ++t) a.push_back(100 * t);
  const std::vector<int> before = a;
  b = empty;
  for (int i = 0; i < kRounds; ++i) {
    auto& to = i % 2 ? a : b;
    const auto& from = i % 2 ? b : a;
    for (int t = 0; t < kThreads; ++t) to[(t + 1) % kThreads] += from[t];
  }
  const auto first = c.buffer("a", before, a);
  const auto second = c.buffer("b", empty, b);
  c.launch("barrier_rounds_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(first), c.address(second));
  c.rewritten("barrier_rounds_parent");
  c.by_warp("order-kept");
}

KLAP_CASE(shared_blocks, "lanes with different blocks share a launch") {
  cells_case(
      c, "blocks_parent", kThreads,
      [](int t) {
        const int x = 1 + t % 7, y = 1 + t / 7 % 3, z = 1 + t % 2;
        int sum = 0;
        for (int i = 0; i < x; ++i)
          for (int j = 0; j < y; ++j)
            for (int k = 0; k < z; ++k) sum += 1 + i + j + k;
        return sum * (1 + t % 4) * (1 + t % 3);
      },
      nullptr);
}

KLAP_CASE(shared_many_bytes, "more children than fit go into one launch, or arguments overlap") {
  cells_case(
      c, "many_bytes_parent", kThreads,
      [](int t) { return t % 11 == 5 ? 0 : 2 * 16 * t * (kNumbers * (kNumbers - 1) / 2); }, nullptr);
}

KLAP_CASE(shared_meeting, "threads of a child wait for those of another, or for ones that have left") {
  std::vector<int> after;
  for (int i = 0; i < 2 * kThreads; ++i) {
    const int n = 1 + i / 2 % 64;
    int sum = 0;
    for (int warp = 0; warp < 64; warp += 32) {
      const int lanes = std::min(std::max(n - warp, 0), 32);
      sum += lanes * lanes;
    }
    after.push_back(sum + i % 2);
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("meeting_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  c.left_on_host("meeting_parent", "child-barrier");
  c.by_warp("rewritten");
}

KLAP_CASE(shared_codes, "a refused lane disturbs those that it arrives with, or its error is lost") {
  std::vector<int> after, codes;
  for (int t = 0; t < kThreads; ++t) {
    const int code = t % 3 == 1 ? kInvalidConfiguration : 0;
    after.push_back(code ? 0 : t + 1);
    codes.insert(codes.end(), {code, 0, code, code});
  }
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), after);
  const auto e = c.buffer("codes", std::vector<int>(4 * kThreads, -1), codes);
  c.launch("codes_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(e));
}

KLAP_CASE(shared_other_calls, "a copy behind a launch in the same stream does not wait for it") {
  std::vector<int> after;
  for (int t = 0; t < kThreads; ++t) after.push_back(t * t);
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), after);
  const auto copy = c.buffer("copy", std::vector<int>(kThreads), after);
  c.launch("other_calls_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(copy));
  c.left("other_calls_parent", "runtime-call");
  c.executed();
  c.by_warp("rewritten");
}

#endif
