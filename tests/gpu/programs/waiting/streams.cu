// Kernels that use streams and events before and behind their waits, and ask for the result of each call.
#include "sizes.h"

constexpr int kStreams = 4;

extern "C" __global__ void in_loop(int* sums, int* results, int* errors, int rounds);
extern "C" __global__ void in_array(int* sums, int* results, int* errors, int rounds);
extern "C" __global__ void of_block(int* sums, int* results, int* errors, int rounds);
extern "C" __global__ void by_events(int* sums, int* results, int* errors, int rounds);

#ifdef __CUDACC__
extern "C" __global__ void add(int* sum, int value) { atomicAdd(sum, value); }

__device__ void expect(int* errors, cudaError_t result) {
  if (result != cudaSuccess) atomicAdd(errors, 1);
}

__device__ int thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Each thread has a stream, and waits in every other round.
extern "C" __global__ void in_loop(int* sums, int* results, int* errors, int rounds) {
  const int t = thread_number();
  cudaStream_t stream;
  expect(errors, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int seen = 0;
  for (int i = 0; i < rounds; ++i) {
    add<<<1, 8, 0, stream>>>(&sums[t], i + 1);
    expect(errors, cudaGetLastError());
    if ((t + i) % 2 != 0) continue;
    expect(errors, cudaDeviceSynchronize());
    seen += sums[t];
  }
  expect(errors, cudaDeviceSynchronize());
  results[t] = seen + sums[t];
  expect(errors, cudaStreamDestroy(stream));
}

// Each thread has an array of streams, and makes it anew behind the wait.
extern "C" __global__ void in_array(int* sums, int* results, int* errors, int rounds) {
  const int t = thread_number();
  int seen = 0;
  for (int half = 0; half < 2; ++half) {
    cudaStream_t streams[kStreams];
    for (int i = 0; i < kStreams; ++i)
      expect(errors, cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    for (int i = 0; i < rounds; ++i) add<<<2, 4, 0, streams[i % kStreams]>>>(&sums[t], 1);
    expect(errors, cudaDeviceSynchronize());
    seen = seen * 10 + sums[t];
    for (int i = 0; i < kStreams; ++i) expect(errors, cudaStreamDestroy(streams[(i + half) % kStreams]));
  }
  results[t] = seen;
}

// The threads of a block share a stream. One of them waits, and another one destroys it.
extern "C" __global__ void of_block(int* sums, int* results, int* errors, int rounds) {
  __shared__ cudaStream_t stream;
  __shared__ int seen;
  int* const sum = &sums[blockIdx.x];
  if (threadIdx.x == 0) expect(errors, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  __syncthreads();
  for (int i = 0; i < rounds; ++i) add<<<1, 2, 0, stream>>>(sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(errors, cudaDeviceSynchronize());
    seen = *sum;
  }
  __syncthreads();
  add<<<1, 3, 0, stream>>>(sum, 10);
  __syncthreads();
  if (threadIdx.x == 1) {
    expect(errors, cudaDeviceSynchronize());
    seen += 1000 * *sum;
    expect(errors, cudaStreamDestroy(stream));
  }
  __syncthreads();
  results[thread_number()] = seen + threadIdx.x;
}

// One stream waits for the other, in each round anew.
extern "C" __global__ void by_events(int* sums, int* results, int* errors, int rounds) {
  const int t = thread_number();
  cudaStream_t first, second;
  cudaEvent_t event;
  expect(errors, cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  expect(errors, cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  expect(errors, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  int seen = 0;
  for (int i = 0; i < rounds; ++i) {
    add<<<1, 4, 0, first>>>(&sums[t], 1);
    expect(errors, cudaEventRecord(event, first));
    expect(errors, cudaStreamWaitEvent(second, event, 0));
    add<<<1, 2, 0, second>>>(&sums[t], 100);
    if (i % 2 != 0) continue;
    expect(errors, cudaDeviceSynchronize());
    seen += sums[t];
  }
  expect(errors, cudaStreamDestroy(first));
  expect(errors, cudaStreamDestroy(second));
  expect(errors, cudaEventDestroy(event));
  results[t] = seen;
}
#endif

#ifndef __CUDACC_RTC__
namespace {

constexpr int kThreads = 24;

// What each kernel leaves in the result of a thread of a block.
using Expected = int (*)(int thread, int in_block, int rounds);
int of_loop(int thread, int, int rounds) {
  int sum = 0, seen = 0;
  for (int i = 0; i < rounds; ++i) {
    sum += 8 * (i + 1);
    if ((thread + i) % 2 == 0) seen += sum;
  }
  return seen + sum;
}
int of_array(int, int, int rounds) { return 8 * rounds * 10 + 16 * rounds; }
int of_shared_stream(int, int in_block, int rounds) {
  const int seen = kThreads * 2 * rounds;
  return seen + 1000 * (seen + kThreads * 30) + in_block;
}
int of_events(int, int, int rounds) {
  int seen = 0;
  for (int i = 0; i < rounds; i += 2) seen += 204 * (i + 1);
  return seen;
}

template <class Launch>
void test(gpu::Report& report, const char* form, int blocks, int rounds, Expected expected,
          const Launch& launch) {
  const size_t threads = static_cast<size_t>(blocks) * kThreads;
  gpu::Buffer<int> sums(threads), results(threads), errors(1);
  launch(sums.data(), results.data(), errors.data());
  gpu::wait(form);
  std::vector<int> right;
  for (int t = 0; t < blocks * kThreads; ++t) right.push_back(expected(t, t % kThreads, rounds));
  report.expect_equal(form, results.to_host(), right);
  report.expect_equal("errors", errors.to_host(), std::vector<int>{0});
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("streams", argc, argv, [](gpu::Report& report, int size) {
    const int blocks = 1 + 3 * size, rounds = 3 + size;
    test(report, "in a loop", blocks, rounds, of_loop, [&](int* sums, int* results, int* errors) {
      WAITING_LAUNCH(in_loop, blocks, kThreads)(sums, results, errors, rounds);
    });
    test(report, "in an array", blocks, rounds, of_array, [&](int* sums, int* results, int* errors) {
      WAITING_LAUNCH(in_array, blocks, kThreads)(sums, results, errors, rounds);
    });
    test(report, "of a block", blocks, rounds, of_shared_stream, [&](int* sums, int* results, int* errors) {
      WAITING_LAUNCH(of_block, blocks, kThreads)(sums, results, errors, rounds);
    });
    test(report, "by events", blocks, rounds, of_events, [&](int* sums, int* results, int* errors) {
      WAITING_LAUNCH(by_events, blocks, kThreads)(sums, results, errors, rounds);
    });
  });
}
#endif
