// Waits for children, of dynamic parallelism version 1: what a thread needs behind its wait must be there.
#include "case.h"

constexpr int kBlockThreads = 64, kGrid = 3, kDeepest = 6, kSorted = 200;

// What a child makes of a cell.
KLAP_SHARED static int changed(int value) { return value * 3 + 1; }

KLAP_SHARED static int mixed(int value, int by) { return (value ^ by) * 5 + (value >> 3); }

#ifdef __CUDACC__

__global__ void change(int* cell) { *cell = changed(*cell); }

__global__ void change_all(int* cells) { cells[threadIdx.x] = changed(cells[threadIdx.x]); }

// Each thread waits for a child of its own. Registers of all kinds live on.
extern "C" __global__ void wait_each(int* cells, double scale) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const bool odd = cells[t] % 2 != 0;
  const double before = cells[t] * scale;
  const short narrow = static_cast<short>(cells[t] * 7);
  change<<<1, 1>>>(cells + t);
  cudaDeviceSynchronize();
  cells[t] = static_cast<int>(before) + (odd ? cells[t] : -cells[t]) + narrow;
}

// One thread waits for all, and the others meet it at a barrier. Shared memory lives on.
extern "C" __global__ void wait_one(int* cells) {
  __shared__ int kept[kBlockThreads];
  const int first = blockIdx.x * blockDim.x;
  kept[threadIdx.x] = cells[first + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 7) {
    change_all<<<1, kBlockThreads>>>(cells + first);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  const int other = kBlockThreads - 1 - threadIdx.x;
  const int value = cells[first + other] + kept[other];
  __syncthreads();
  cells[first + threadIdx.x] = value;
}

// Some threads have ended, some wait, and the rest meets at barriers between the rounds.
extern "C" __global__ void wait_some(int* cells, int rounds) {
  __shared__ int sum;
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 5 == 3) return;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (threadIdx.x % 4 == round % 4) {
      change<<<1, 1>>>(cells + t);
      cudaDeviceSynchronize();
      atomicAdd(&sum, cells[t]);
    }
    const int odd = __syncthreads_count(cells[t] % 2 != 0);
    cells[t] = mixed(cells[t], sum + odd);
    __syncthreads();
  }
}

// A local array lives on, at an index that only memory knows.
extern "C" __global__ void wait_array(int* cells, const int* places) {
  int local[12];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < 12; ++i) local[places[i]] = cells[t] + i;
  change<<<1, 1>>>(cells + t);
  cudaDeviceSynchronize();
  int sum = cells[t];
  for (int i = 0; i < 12; ++i) sum = sum * 3 + local[places[(i + t) % 12]];
  cells[t] = sum;
}

__device__ __noinline__ void run_child(int* cell, int times) {
  for (int i = 0; i < times; ++i) {
    change<<<1, 1>>>(cell);
    cudaDeviceSynchronize();
  }
}

// The wait is in a called function.
extern "C" __global__ void wait_called(int* cells) {
  const int t = threadIdx.y * blockDim.x + threadIdx.x;
  const int before = cells[t];
  run_child(cells + t, t % 4);
  cells[t] = mixed(cells[t], before);
}

__device__ __noinline__ int number_of_block(int by) { return blockIdx.x * by + gridDim.x; }

// A called function that does not wait asks for the place of its block.
extern "C" __global__ void wait_placed(int* cells, int by) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  change<<<1, 1>>>(cells + t);
  cudaDeviceSynchronize();
  cells[t] += number_of_block(by);
}

// A tree of sums: each grid waits for both halves.
extern "C" __global__ void sum_tree(int* sums, int node, int depth) {
  if (depth == kDeepest) {
    sums[node] = node % 17;
    return;
  }
  sum_tree<<<1, 1>>>(sums, 2 * node, depth + 1);
  sum_tree<<<1, 1>>>(sums, 2 * node + 1, depth + 1);
  cudaDeviceSynchronize();
  sums[node] = sums[2 * node] + sums[2 * node + 1];
}

extern "C" __global__ void merge_sort(int* values, int* spare, int low, int high) {
  if (high - low < 2) return;
  const int middle = (low + high) / 2;
  if (threadIdx.x == 0) {
    merge_sort<<<1, 32>>>(values, spare, low, middle);
    merge_sort<<<1, 32>>>(values, spare, middle, high);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  for (int i = low + threadIdx.x; i < high; i += blockDim.x) {
    int place = i < middle ? i : i - middle + low;
    const int from = i < middle ? middle : low, to = i < middle ? high : middle;
    for (int j = from; j < to; ++j) place += i < middle ? values[j] < values[i] : values[j] <= values[i];
    spare[place] = values[i];
  }
  __syncthreads();
  for (int i = low + threadIdx.x; i < high; i += blockDim.x) values[i] = spare[i];
}

// The size of the shared array is the launch's.
extern "C" __global__ void wait_dynamic(int* cells) {
  extern __shared__ int dynamic[];
  const int first = blockIdx.x * blockDim.x;
  dynamic[threadIdx.x] = cells[first + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    change_all<<<1, kBlockThreads>>>(cells + first);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  cells[first + threadIdx.x] += dynamic[kBlockThreads - 1 - threadIdx.x] * static_cast<int>(gridDim.x);
}

// Memory of the kernel's own, which its children fill, and which it frees behind the wait.
extern "C" __global__ void wait_and_free(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int* const own = static_cast<int*>(malloc(2 * sizeof(int)));
  own[0] = cells[t];
  own[1] = 2 * cells[t];
  change<<<1, 1>>>(own);
  change<<<1, 1>>>(own + 1);
  cudaDeviceSynchronize();
  cells[t] = own[0] + own[1];
  free(own);
}

// Copies and fills are launches, too. The thread asks whether all went well.
extern "C" __global__ void wait_for_copies(int* cells, int* spare, int* errors) {
  const int count = blockDim.x;
  if (threadIdx.x == 0) {
    cudaMemcpyAsync(spare, cells, count * sizeof(int), cudaMemcpyDeviceToDevice);
    cudaMemsetAsync(cells, 0, count / 2 * sizeof(int));
    if (cudaDeviceSynchronize() != cudaSuccess) ++*errors;
    change_all<<<1, kBlockThreads>>>(cells);
    cudaDeviceSynchronize();
    if (cudaGetLastError() != cudaSuccess) ++*errors;
  }
  __syncthreads();
  cells[threadIdx.x] += spare[count - 1 - threadIdx.x];
}

// Nothing has been launched where all but one block wait.
extern "C" __global__ void wait_for_nothing(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 1) change<<<1, 1>>>(cells + t);
  cudaDeviceSynchronize();
  cells[t] += 2;
}

#else

#include <algorithm>
#include <numeric>

namespace {

constexpr int kCells = kGrid * kBlockThreads;

std::vector<int> initial_cells(int count = kCells) {
  std::vector<int> cells;
  for (int t = 0; t < count; ++t) cells.push_back(t * 37 % 101);
  return cells;
}

void waits(klap::differential::Builder& c, const char* kernel) { c.rewritten(kernel); }

}  // namespace

KLAP_CASE(waits_of_each_thread, "a register is not what it was before the wait") {
  std::vector<int> expected;
  for (const int value : initial_cells())
    expected.push_back(static_cast<int>(value * 1.5) + (value % 2 != 0 ? changed(value) : -changed(value)) +
                       static_cast<short>(value * 7));
  const auto cells = c.buffer("cells", initial_cells(), expected);
  c.launch("wait_each", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells), 1.5);
  waits(c, "wait_each");
}

KLAP_CASE(waits_of_one_thread, "a thread passes the barrier, or shared memory is not what it was") {
  const std::vector<int> before = initial_cells();
  std::vector<int> expected(before.size());
  for (int t = 0; t < kCells; ++t) {
    const int other = t / kBlockThreads * kBlockThreads + kBlockThreads - 1 - t % kBlockThreads;
    expected[t] = changed(before[other]) + before[other];
  }
  const auto cells = c.buffer("cells", before, expected);
  c.launch("wait_one", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells));
  waits(c, "wait_one");
}

KLAP_CASE(waits_of_some_threads, "threads that have ended, wait or stand at a barrier are mixed up") {
  constexpr int kRounds = 5;
  std::vector<int> expected = initial_cells();
  for (int block = 0; block < kGrid; ++block) {
    for (int round = 0; round < kRounds; ++round) {
      int sum = 0, odd = 0;
      const auto each = [&](auto&& work) {
        for (int t = 0; t < kBlockThreads; ++t)
          if (t % 5 != 3) work(t, expected[block * kBlockThreads + t]);
      };
      each([&](int t, int& cell) {
        if (t % 4 != round % 4) return;
        cell = changed(cell);
        sum += cell;
      });
      each([&](int, int& cell) { odd += cell % 2 != 0; });
      each([&](int, int& cell) { cell = mixed(cell, sum + odd); });
    }
  }
  const auto cells = c.buffer("cells", initial_cells(), expected);
  c.launch("wait_some", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells), kRounds);
  waits(c, "wait_some");
}

KLAP_CASE(waits_with_a_local_array, "an array in local memory is not what it was") {
  std::vector<int> places(12), expected;
  for (int i = 0; i < 12; ++i) places[i] = i * 5 % 12;
  const std::vector<int> before = initial_cells();
  for (int t = 0; t < kCells; ++t) {
    int local[12], sum = changed(before[t]);
    for (int i = 0; i < 12; ++i) local[places[i]] = before[t] + i;
    for (int i = 0; i < 12; ++i) sum = sum * 3 + local[places[(i + t) % 12]];
    expected.push_back(sum);
  }
  const auto cells = c.buffer("cells", before, expected);
  c.launch("wait_array", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells),
           c.address(c.input("places", places)));
  waits(c, "wait_array");
}

KLAP_CASE(waits_in_a_function, "a called function does not wait") {
  const std::vector<int> before = initial_cells(kBlockThreads);
  std::vector<int> expected = before;
  for (int t = 0; t < kBlockThreads; ++t) {
    for (int i = 0; i < t % 4; ++i) expected[t] = changed(expected[t]);
    expected[t] = mixed(expected[t], before[t]);
  }
  const auto cells = c.buffer("cells", before, expected);
  c.launch("wait_called", {1, 1, 1}, {kBlockThreads / 4, 4, 1}, c.address(cells));
  waits(c, "wait_called");
}

KLAP_CASE(waits_in_front_of_a_function, "a function takes a block for another one that goes on alone") {
  constexpr int kBy = 5;
  std::vector<int> expected = initial_cells();
  for (int t = 0; t < kCells; ++t) expected[t] = changed(expected[t]) + t / kBlockThreads * kBy + kGrid;
  const auto cells = c.buffer("cells", initial_cells(), expected);
  c.launch("wait_placed", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells), kBy);
  waits(c, "wait_placed");
}

KLAP_CASE(waits_in_a_tree, "a node does not wait for its children's children") {
  std::vector<int> expected(2 << kDeepest);
  for (int node = (2 << kDeepest) - 1; node > 0; --node)
    expected[node] = node >= 1 << kDeepest ? node % 17 : expected[2 * node] + expected[2 * node + 1];
  const auto sums = c.buffer("sums", std::vector<int>(expected.size()), expected);
  c.launch("sum_tree", {1, 1, 1}, {1, 1, 1}, c.address(sums), 1, 0);
  waits(c, "sum_tree");
}

KLAP_CASE(waits_of_a_merge_sort, "a half is merged before it is sorted") {
  std::vector<int> expected = initial_cells(kSorted);
  std::ranges::sort(expected);
  const auto values = c.buffer("values", initial_cells(kSorted), expected);
  const auto spare = c.buffer("spare", std::vector<int>(kSorted), expected);
  c.launch("merge_sort", {1, 1, 1}, {32, 1, 1}, c.address(values), c.address(spare), 0, kSorted);
  waits(c, "merge_sort");
}

KLAP_CASE(waits_with_dynamic_shared_memory, "an array whose size the launch decides is not what it was") {
  const std::vector<int> before = initial_cells();
  std::vector<int> expected(before.size());
  for (int t = 0; t < kCells; ++t) {
    const int other = t / kBlockThreads * kBlockThreads + kBlockThreads - 1 - t % kBlockThreads;
    expected[t] = changed(before[t]) + before[other] * kGrid;
  }
  const auto cells = c.buffer("cells", before, expected);
  c.launch("wait_dynamic", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells)).launch.shared =
      kBlockThreads * sizeof(int);
  waits(c, "wait_dynamic");
}

KLAP_CASE(waits_with_memory_of_its_own, "memory is freed while a child uses it") {
  const std::vector<int> before = initial_cells();
  std::vector<int> expected;
  for (const int value : before) expected.push_back(changed(value) + changed(2 * value));
  const auto cells = c.buffer("cells", before, expected);
  c.launch("wait_and_free", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells));
  waits(c, "wait_and_free");
}

KLAP_CASE(waits_for_copies, "a copy or a fill is not waited for, or an error is made up") {
  const std::vector<int> before = initial_cells(kBlockThreads);
  std::vector<int> expected;
  for (int t = 0; t < kBlockThreads; ++t)
    expected.push_back(changed(t < kBlockThreads / 2 ? 0 : before[t]) + before[kBlockThreads - 1 - t]);
  const auto cells = c.buffer("cells", before, expected);
  const auto spare = c.buffer("spare", std::vector<int>(kBlockThreads), before);
  const auto errors = c.buffer("errors", std::vector<int>(1), std::vector<int>(1));
  c.launch("wait_for_copies", {1, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells), c.address(spare),
           c.address(errors));
  waits(c, "wait_for_copies");
}

KLAP_CASE(waits_for_nothing, "a block that has launched nothing does not go on") {
  std::vector<int> expected = initial_cells();
  for (int t = 0; t < kCells; ++t)
    expected[t] = (t / kBlockThreads == 1 ? changed(expected[t]) : expected[t]) + 2;
  const auto cells = c.buffer("cells", initial_cells(), expected);
  c.launch("wait_for_nothing", {kGrid, 1, 1}, {kBlockThreads, 1, 1}, c.address(cells));
  waits(c, "wait_for_nothing");
}

#endif
