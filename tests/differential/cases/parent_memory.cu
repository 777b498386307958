// What the parent writes and what the child sees of it: all that came before the launch in its own thread,
// and what a barrier brought before it. What the parent writes afterwards goes elsewhere.
#include "case.h"

constexpr int kThreads = 128;

#ifdef __CUDACC__

__global__ void twice(int* cells, int t) {
  if (threadIdx.x == 0) cells[t] *= 2;
}
__global__ void sum_block(const int* values, int n, int* sum) {
  if (static_cast<int>(threadIdx.x) < n) atomicAdd(sum, values[threadIdx.x]);
}

extern "C" __global__ void write_then_launch(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = t + 5;
  twice<<<1, 32>>>(cells, t);
}
extern "C" __global__ void barrier_then_launch(int* values, int* sums) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  values[t] = t * 3;
  __syncthreads();
  if (threadIdx.x % 16 == 0) sum_block<<<1, 64>>>(values + blockIdx.x * 64, 64, sums + t / 16);
}
extern "C" __global__ void launch_then_write(int* cells, int* others) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = t;
  twice<<<1, 32>>>(cells, t);
  others[t] = t + 1;
  for (int i = 0; i < t % 7; ++i) others[t] += i;
}
// Atomics in counted loops behind the launch: one whose result nobody reads, one that gives out places, and
// one on shared memory.
extern "C" __global__ void launch_then_count(int* cells, int* counts, int* places, int rounds) {
  __shared__ int left;
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) left = 0;
  __syncthreads();
  cells[t] = t;
  twice<<<1, 32>>>(cells, t);
  for (int i = 0; i < rounds; ++i) atomicAdd(counts + i, t % 5);
  for (int i = 0; i < rounds; ++i) {
    const int place = atomicAdd(counts + rounds, 1);
    if (place < 3 * kThreads) places[place] = 7;
  }
  for (int i = 0; i < t % 4; ++i) atomicMax(&left, i + static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) counts[rounds + 1 + blockIdx.x] = left;
}
// What the device is has no order with launches.
extern "C" __global__ void ask_and_launch(int* cells, int* answers) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int device = -1, warp = 0;
  answers[2 * t] = cudaGetDevice(&device);
  answers[2 * t + 1] = cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
  cells[t] = warp + t;
  twice<<<1, 32>>>(cells, t);
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) answers[2 * t] += count;
}
// Its shared memory is its own, also where that of the children is beside it.
__global__ void turn_in_shared(int* cells) {
  __shared__ int turned[64];
  turned[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  atomicAdd(cells + threadIdx.x, turned[63 - threadIdx.x]);
}
extern "C" __global__ void ask_for_shared(int* cells, unsigned* answers) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(answers[2 * t]));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(answers[2 * t + 1]));
  turn_in_shared<<<1, 64>>>(cells);
}

#else

namespace {

std::vector<int> numbers(int (*of)(int), int n = kThreads) {
  std::vector<int> out;
  for (int t = 0; t < n; ++t) out.push_back(of(t));
  return out;
}

}  // namespace

KLAP_CASE(write_then_launch, "a child does not see what its thread wrote before the launch") {
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads), numbers([](int t) { return 2 * (t + 5); }));
  c.launch("write_then_launch", {2, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("write_then_launch");
}

KLAP_CASE(barrier_then_launch, "a child does not see what other threads wrote before a barrier") {
  const auto values = c.buffer("values", std::vector<int>(kThreads), numbers([](int t) { return 3 * t; }));
  const auto sums = c.buffer("sums", std::vector<int>(kThreads / 16),
                             numbers(
                                 [](int group) {
                                   const int first = group / 4 * 64;
                                   return 3 * (64 * first + 63 * 64 / 2);
                                 },
                                 kThreads / 16));
  c.launch("barrier_then_launch", {2, 1, 1}, {64, 1, 1}, c.address(values), c.address(sums));
  c.rewritten("barrier_then_launch");
}

KLAP_CASE(launch_then_write, "the parent's writes after a launch are lost") {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), numbers([](int t) { return 2 * t; }));
  const auto others = c.buffer("others", std::vector<int>(kThreads), numbers([](int t) {
                                 int value = t + 1;
                                 for (int i = 0; i < t % 7; ++i) value += i;
                                 return value;
                               }));
  c.launch("launch_then_write", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(others));
  c.rewritten("launch_then_write");
}

KLAP_CASE(launch_then_count, "the parent's atomics after a launch are lost") {
  constexpr int kRounds = 3;
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), numbers([](int t) { return 2 * t; }));
  int sum = 0;
  for (int t = 0; t < kThreads; ++t) sum += t % 5;
  const auto counts = c.buffer("counts", std::vector<int>(kRounds + 3),
                               std::vector<int>{sum, sum, sum, kRounds * kThreads, 63 + 2, 63 + 2});
  const auto places = c.buffer("places", std::vector<int>(kRounds * kThreads + 4), [] {
    std::vector<int> after(kRounds * kThreads, 7);
    after.resize(kRounds * kThreads + 4);
    return after;
  }());
  c.launch("launch_then_count", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(counts), c.address(places),
           kRounds);
  c.rewritten("launch_then_count");
}

KLAP_CASE(ask_and_launch, "questions about the device are answered wrongly, or keep launches from the grid") {
  const auto cells =
      c.buffer("cells", std::vector<int>(kThreads), numbers([](int t) { return 2 * (t + 32); }));
  const auto answers = c.buffer("answers", std::vector<int>(2 * kThreads, -1),
                                numbers([](int i) { return 1 - i % 2; }, 2 * kThreads));
  c.launch("ask_and_launch", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(answers));
  c.rewritten("ask_and_launch");
}

KLAP_CASE(ask_for_shared, "a parent is told of shared memory that is its children's") {
  std::vector<int> after;
  for (int i = 0; i < 64; ++i) after.push_back(kThreads * (63 - i));
  const auto cells = c.buffer("cells", std::vector<int>(64), after);
  const auto answers =
      c.buffer("answers", std::vector<unsigned>(2 * kThreads), std::vector<unsigned>(2 * kThreads, 1024));
  c.launch("ask_for_shared", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(answers)).launch.shared =
      1024;
  c.rewritten("ask_for_shared");
}

#endif
