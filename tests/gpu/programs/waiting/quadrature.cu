// Adaptive quadrature by Simpson's rule: a grid that is not exact enough launches a grid for each half of its
// interval and waits. Then it adds the results of the halves. Every operation is rounded by itself, so that
// the CPU gets the same bits.
#include "sizes.h"

struct Result {
  double area;
  int grids;
};

namespace {

constexpr double kLow = -3, kHigh = 5;
constexpr int kDeepest = 12;

}  // namespace

// Node n has its halves at 2n + 1 and 2n + 2.
extern "C" __global__ void integrate(Result* results, size_t node, double low, double high, double tolerance,
                                     int depth);

#ifdef __CUDACC__
namespace {

// One over (x * x + 1 / 64): a peak at 0.
__device__ double peak(double x) { return __ddiv_rn(1, __dadd_rn(__dmul_rn(x, x), 0.015625)); }

__device__ double simpson(double low, double high) {
  const double ends = __dadd_rn(peak(low), peak(high));
  const double middle = __dmul_rn(4, peak(__dmul_rn(0.5, __dadd_rn(low, high))));
  return __dmul_rn(__ddiv_rn(__dsub_rn(high, low), 6), __dadd_rn(ends, middle));
}

}  // namespace

extern "C" __global__ void integrate(Result* results, size_t node, double low, double high, double tolerance,
                                     int depth) {
  const double middle = __dmul_rn(0.5, __dadd_rn(low, high));
  const double whole = simpson(low, high);
  const double halves = __dadd_rn(simpson(low, middle), simpson(middle, high));
  Result& result = results[node];
  if (depth == kDeepest || fabs(__dsub_rn(whole, halves)) <= tolerance) {
    result = {halves, 1};
    return;
  }
  const size_t left = 2 * node + 1, right = left + 1;
  integrate<<<1, 1>>>(results, left, low, middle, 0.5 * tolerance, depth + 1);
  integrate<<<1, 1>>>(results, right, middle, high, 0.5 * tolerance, depth + 1);
  cudaDeviceSynchronize();
  result = {__dadd_rn(results[left].area, results[right].area),
            results[left].grids + results[right].grids + 1};
}
#endif

#ifndef __CUDACC_RTC__
#include <cmath>

namespace {

double peak_on_cpu(double x) {
  const double square = x * x;
  return 1 / (square + 0.015625);
}

double simpson_on_cpu(double low, double high) {
  const double ends = peak_on_cpu(low) + peak_on_cpu(high);
  const double middle = 4 * peak_on_cpu(0.5 * (low + high));
  return (high - low) / 6 * (ends + middle);
}

Result on_cpu(double low, double high, double tolerance, int depth) {
  const double middle = 0.5 * (low + high);
  const double whole = simpson_on_cpu(low, high);
  const double halves = simpson_on_cpu(low, middle) + simpson_on_cpu(middle, high);
  if (depth == kDeepest || std::abs(whole - halves) <= tolerance) return {halves, 1};
  const Result left = on_cpu(low, middle, 0.5 * tolerance, depth + 1);
  const Result right = on_cpu(middle, high, 0.5 * tolerance, depth + 1);
  return {left.area + right.area, left.grids + right.grids + 1};
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("quadrature", argc, argv, [](gpu::Report& report, int size) {
    const double tolerances[] = {1, 1e-4, 1e-6};
    gpu::Buffer<Result> results(size_t{1} << (kDeepest + 1));
    WAITING_LAUNCH(integrate, 1, 1)(results.data(), 0, kLow, kHigh, tolerances[size], 0);
    gpu::wait("integrate");
    const Result got = results.to_host()[0], want = on_cpu(kLow, kHigh, tolerances[size], 0);
    report.expect_equal("the area", std::vector<double>{got.area}, {want.area});
    report.expect_equal("the number of grids", std::vector<int>{got.grids}, {want.grids});
  });
}
#endif
