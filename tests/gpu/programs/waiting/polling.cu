// Kernels that wait for their children without a word of it: they look again and again at what these write.
// Each form of looking is a kernel of its own. Natively an H200 takes this program and never ends it.
#include "sizes.h"

constexpr int kThreads = 32, kRows = 4, kMostDepth = 12;

extern "C" __global__ void each_thread(int* flags, int* values, int* results);
extern "C" __global__ void first_thread(int* counts, int* values, int* results);
extern "C" __global__ void in_function(int* counts, int* values, int* results);
extern "C" __global__ void in_turns(int* flags, int* values, int* results);
extern "C" __global__ void two_halves(int* flags, int* results, int node, int depth);

#ifdef __CUDACC__
__device__ int value_of(int cell) { return 3 * cell + 1; }

// The child of one cell.
extern "C" __global__ void fill(volatile int* flags, volatile int* values, int cell) {
  if (threadIdx.x != 0) return;
  values[cell] = value_of(cell);
  __threadfence();
  flags[cell] = 1;
}

// The child of a block: counts its threads that are done.
extern "C" __global__ void fill_row(int* counts, volatile int* values, int row) {
  values[row * kThreads + threadIdx.x] = value_of(row * kThreads + threadIdx.x);
  __threadfence();
  atomicAdd(&counts[row], 1);
}

// Each thread looks at a flag of its own, and keeps an array and a product of it.
extern "C" __global__ void each_thread(int* flags, int* values, int* results) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  int own[kRows];
  for (int i = 0; i < kRows; ++i) own[i] = cell * (i + 1);
  fill<<<1, 32>>>(flags, values, cell);
  while (((volatile int*)flags)[cell] == 0) {
  }
  __threadfence();
  results[cell] = ((volatile int*)values)[cell] + own[cell % kRows];
}

// One thread looks, with an atomic and in no hurry. The others are at the barrier, with their shared memory.
extern "C" __global__ void first_thread(int* counts, int* values, int* results) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = blockIdx.x + threadIdx.x;
  if (threadIdx.x == 0) {
    fill_row<<<1, kThreads>>>(counts, values, blockIdx.x);
    while (atomicAdd(&counts[blockIdx.x], 0) < kThreads) __nanosleep(100);
    __threadfence();
  }
  __syncthreads();
  const int other = kThreads - 1 - threadIdx.x;
  results[blockIdx.x * kThreads + threadIdx.x] =
      ((volatile int*)values)[blockIdx.x * kThreads + threadIdx.x] + shared[other];
}

__device__ __noinline__ int look(const int* count, int enough) {
  int looks = 0;
  while (*(const volatile int*)count < enough) ++looks;
  __threadfence();
  return looks;
}

// Each block waits for the child of the block before it: that block may not have begun.
extern "C" __global__ void in_function(int* counts, int* values, int* results) {
  const int row = (blockIdx.x + gridDim.x - 1) % gridDim.x;
  if (threadIdx.x == 0) fill_row<<<1, kThreads>>>(counts, values, blockIdx.x);
  const int looks = look(&counts[row], kThreads);
  results[blockIdx.x * kThreads + threadIdx.x] =
      ((volatile int*)values)[row * kThreads + threadIdx.x] + (looks < 0 ? 1 : 0);
}

// One child after the other, each looked for before the next one is launched.
extern "C" __global__ void in_turns(int* flags, int* values, int* results) {
  int sum = 0;
  for (int i = 0; i < kRows; ++i) {
    const int cell = (blockIdx.x * blockDim.x + threadIdx.x) * kRows + i;
    fill<<<1, 32>>>(flags, values, cell);
    for (bool is_there = false; !is_there;) is_there = ((volatile int*)flags)[cell] != 0;
    __threadfence();
    sum += ((volatile int*)values)[cell] * (i + 1);
  }
  results[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Each grid looks for two others of its kind, whose results are at 2 * node + 1 and 2 * node + 2.
extern "C" __global__ void two_halves(int* flags, int* results, int node, int depth) {
  int sum = 1;
  if (depth > 0) {
    two_halves<<<1, 1>>>(flags, results, 2 * node + 1, depth - 1);
    two_halves<<<1, 1>>>(flags, results, 2 * node + 2, depth - 1);
    for (int child = 1; child <= 2; ++child) {
      while (((volatile int*)flags)[2 * node + child] == 0) {
      }
      __threadfence();
      sum += ((volatile int*)results)[2 * node + child];
    }
  }
  results[node] = sum;
  __threadfence();
  ((volatile int*)flags)[node] = 1;
}
#endif

#ifndef __CUDACC_RTC__
namespace {

int left_in(int cell) { return 3 * cell + 1; }

// What each form leaves in a result, by its block and its thread.
using Expected = int (*)(int block, int thread, int blocks);
int by_each_thread(int block, int thread, int) {
  const int cell = block * kThreads + thread;
  return left_in(cell) + cell * (cell % kRows + 1);
}
int by_first_thread(int block, int thread, int) {
  return left_in(block * kThreads + thread) + block + kThreads - 1 - thread;
}
int in_a_function(int block, int thread, int blocks) {
  return left_in((block + blocks - 1) % blocks * kThreads + thread);
}
int one_after_another(int block, int thread, int) {
  int sum = 0;
  for (int i = 0; i < kRows; ++i) sum += left_in((block * kThreads + thread) * kRows + i) * (i + 1);
  return sum;
}

template <class Launch>
void test(gpu::Report& report, const char* form, int blocks, Expected expected, const Launch& launch) {
  const size_t cells = static_cast<size_t>(blocks) * kThreads;
  gpu::Buffer<int> flags(cells * kRows), values(cells * kRows), results(cells);
  launch(flags.data(), values.data(), results.data());
  gpu::wait(form);
  std::vector<int> right;
  for (int block = 0; block < blocks; ++block)
    for (int thread = 0; thread < kThreads; ++thread) right.push_back(expected(block, thread, blocks));
  report.expect_equal(form, results.to_host(), right);
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("polling", argc, argv, [](gpu::Report& report, int size) {
    const int blocks = 2 + 30 * size * size;
    test(report, "each thread", blocks, by_each_thread, [&](int* flags, int* values, int* results) {
      WAITING_LAUNCH(each_thread, blocks, kThreads)(flags, values, results);
    });
    test(report, "the first thread", blocks, by_first_thread, [&](int* counts, int* values, int* results) {
      WAITING_LAUNCH(first_thread, blocks, kThreads)(counts, values, results);
    });
    test(report, "in a function", blocks, in_a_function, [&](int* counts, int* values, int* results) {
      WAITING_LAUNCH(in_function, blocks, kThreads)(counts, values, results);
    });
    test(report, "in turns", blocks, one_after_another, [&](int* flags, int* values, int* results) {
      WAITING_LAUNCH(in_turns, blocks, kThreads)(flags, values, results);
    });
    const int depth = 2 + size * (kMostDepth - 2) / 2;
    gpu::Buffer<int> flags(size_t{2} << depth), results(size_t{2} << depth);
    WAITING_LAUNCH(two_halves, 1, 1)(flags.data(), results.data(), 0, depth);
    gpu::wait("two halves");
    report.expect_equal("two halves", {results.to_host()[0]}, std::vector<int>{(2 << depth) - 1});
  });
}
#endif
