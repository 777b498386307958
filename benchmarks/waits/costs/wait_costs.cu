// What a wait costs by itself: one that has nothing to wait for, and a block that stops and goes on.
//
// A driver block of 128 threads waits a number of times for nothing, or its first thread launches an empty
// child each time before it waits, with a barrier behind. In a third kernel that thread launches as many
// children into one stream and waits once: what a child costs by itself, as the children of a stream follow
// one another. Two numbers of rounds are timed, and the difference is a round's time, without that of the
// kernel's launch.
//
// It is a program of version 1, so on devices of compute capability 9.0 and later it needs klap_jit.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../common/cuda_check.h"
#include "../../common/device.cuh"

namespace {

constexpr int kBlock = 128;

__global__ void child(unsigned* count) {
  if (threadIdx.x == 0) atomicAdd(count, 1U);
}

__global__ void wait_for_nothing(unsigned* count, int rounds) {
  for (int i = 0; i < rounds; ++i) cudaDeviceSynchronize();
  if (threadIdx.x == 0) *count = static_cast<unsigned>(rounds);
}

// Threads keep a value each over the wait, which a block that stops must save.
__global__ void stop_and_go_on(unsigned* count, int rounds) {
  unsigned seen = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x == 0) {
      child<<<1, 32>>>(count);
      cudaDeviceSynchronize();
    }
    __syncthreads();
    seen += *count;
  }
  if (seen == ~0U) *count = 0;
}

__global__ void launch_in_turn(unsigned* count, int rounds) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < rounds; ++i) child<<<1, 32>>>(count);
  cudaDeviceSynchronize();
}

using Kernel = void (*)(unsigned*, int);

// Milliseconds of one launch, the median of several.
float median_time(Kernel kernel, int rounds, unsigned* count) {
  constexpr int kRuns = 15;
  std::vector<float> times;
  cudaEvent_t begin{}, end{};
  bench::check(cudaEventCreate(&begin), "an event");
  bench::check(cudaEventCreate(&end), "an event");
  for (int run = -3; run < kRuns; ++run) {
    bench::check(cudaMemset(count, 0, sizeof *count), "clearing the counter");
    bench::check(cudaEventRecord(begin), "recording");
    kernel<<<1, kBlock>>>(count, rounds);
    bench::check(cudaGetLastError(), "launching the kernel");
    bench::check(cudaEventRecord(end), "recording");
    bench::check(cudaEventSynchronize(end), "waiting for the kernel");
    unsigned found = 0;
    bench::check(cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost), "reading the counter");
    if (found != static_cast<unsigned>(rounds)) {
      std::fprintf(stderr, "wait_costs: %u rounds instead of %d\n", found, rounds);
      std::exit(1);
    }
    float time = 0;
    bench::check(cudaEventElapsedTime(&time, begin, end), "the time");
    if (run >= 0) times.push_back(time);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

float microseconds_a_round(Kernel kernel, int few, int many, unsigned* count) {
  const float less = median_time(kernel, few, count), more = median_time(kernel, many, count);
  return (more - less) * 1000 / static_cast<float>(many - few);
}

}  // namespace

int main() {
  bench::require_device("wait_costs");
  bench::DeviceArray<unsigned> count(1);
  std::printf("a wait for nothing: %.4f us\n",
              microseconds_a_round(wait_for_nothing, 100, 10100, count.data()));
  const float with_child = microseconds_a_round(stop_and_go_on, 10, 510, count.data());
  const float of_child = microseconds_a_round(launch_in_turn, 10, 510, count.data());
  std::printf("a block launches a child, stops and goes on: %.2f us\n", with_child);
  std::printf("a child of the same stream: %.2f us\n", of_child);
  std::printf("stopping and going on: %.2f us\n", with_child - of_child);
  return 0;
}
