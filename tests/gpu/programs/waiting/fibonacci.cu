// Fibonacci numbers, as the first example of many a course: each grid waits for two others and adds.
#include "sizes.h"

// A place in the tree of calls: the results of node n are at 2n + 1 and 2n + 2.
extern "C" __global__ void fibonacci(long* results, int node, int n);

#ifdef __CUDACC__
extern "C" __global__ void fibonacci(long* results, int node, int n) {
  if (n < 2) {
    results[node] = n;
    return;
  }
  fibonacci<<<1, 1>>>(results, 2 * node + 1, n - 1);
  fibonacci<<<1, 1>>>(results, 2 * node + 2, n - 2);
  cudaDeviceSynchronize();
  results[node] = results[2 * node + 1] + results[2 * node + 2];
}
#endif

#ifndef __CUDACC_RTC__
namespace {

long on_cpu(int n) { return n < 2 ? n : on_cpu(n - 1) + on_cpu(n - 2); }

#ifdef __CUDACC__
// As programs do whose kernels wait at more than two levels. Newer devices do not have the limit.
void set_depth(gpu::Report& report) {
  const cudaLimit limit = cudaLimitDevRuntimeSyncDepth;
  size_t depth = 0;
  const bool is_set = cudaDeviceSetLimit(limit, 20) == cudaSuccess &&
                      cudaDeviceGetLimit(&depth, limit) == cudaSuccess && depth == 20;
  report.expect(is_set, "the depth at which kernels may wait is what was set");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("fibonacci", argc, argv, [](gpu::Report& report, int size) {
#ifdef __CUDACC__
    if (size == 0) set_depth(report);
#endif
    const int n = 4 + 4 * size;
    gpu::Buffer<long> results(size_t{1} << (n + 1));
    WAITING_LAUNCH(fibonacci, 1, 1)(results.data(), 0, n);
    gpu::wait("fibonacci");
    report.expect_equal("a Fibonacci number", std::vector<long>{results.to_host()[0]}, {on_cpu(n)});
  });
}
#endif
