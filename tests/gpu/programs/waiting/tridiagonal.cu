// Tridiagonal systems of equations modulo a prime, solved by cyclic reduction. Each block drives one system:
// it launches a grid for each level and waits for it. Between the two phases it solves the equation in the
// middle.
#include "sizes.h"

using Number = unsigned long long;

// One row of a system: before * x[i - 1] + middle * x[i] + after * x[i + 1] = right.
struct Row {
  Number before, middle, after, right;
};

namespace {

constexpr Number prime = 2147483647;

__host__ __device__ Number times(Number a, Number b) { return a * b % prime; }
__host__ __device__ Number minus(Number a, Number b) { return (a + prime - b) % prime; }

// a / b, by Fermat's little theorem.
__host__ __device__ Number divide(Number a, Number b) {
  for (Number exponent = prime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) a = times(a, b);
    b = times(b, b);
  }
  return a;
}

}  // namespace

// n is a power of two less one.
extern "C" __global__ void solve(Row* all_rows, Number* all_x, int n);

#ifdef __CUDACC__
namespace {

// Takes the unknowns at distance `step` out of every row in the middle between two of them.
__global__ void reduce(Row* rows, int n, int step) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x + 1) * 2 * step - 1;
  if (i + step >= n) return;
  const Row low = rows[i - step], row = rows[i], high = rows[i + step];
  const Number left = times(row.before, high.middle), right = times(row.after, low.middle),
               both = times(low.middle, high.middle);
  rows[i].before = minus(0, times(left, low.before));
  rows[i].after = minus(0, times(right, high.after));
  rows[i].middle = minus(minus(times(row.middle, both), times(left, low.after)), times(right, high.before));
  rows[i].right = minus(minus(times(row.right, both), times(left, low.right)), times(right, high.right));
}

// Computes every unknown in the middle between two known ones.
__global__ void substitute(const Row* rows, Number* x, int n, int step) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * 2 * step + step - 1;
  if (i >= n) return;
  Number value = rows[i].right;
  if (i - step >= 0) value = minus(value, times(rows[i].before, x[i - step]));
  if (i + step < n) value = minus(value, times(rows[i].after, x[i + step]));
  x[i] = divide(value, rows[i].middle);
}

}  // namespace

extern "C" __global__ void solve(Row* all_rows, Number* all_x, int n) {
  Row* rows = all_rows + static_cast<size_t>(blockIdx.x) * n;
  Number* x = all_x + static_cast<size_t>(blockIdx.x) * n;
  int step = 1;
  for (; 2 * step <= n; step *= 2) {
    reduce<<<n / (32 * step) + 1, 16>>>(rows, n, step);
    cudaDeviceSynchronize();
  }
  x[step - 1] = divide(rows[step - 1].right, rows[step - 1].middle);
  for (step /= 2; step > 0; step /= 2) {
    substitute<<<n / (32 * step) + 1, 16>>>(rows, x, n, step);
    cudaDeviceSynchronize();
  }
}
#endif

#ifndef __CUDACC_RTC__
namespace {

// Elimination from the first row to the last; no pivot of these systems is 0.
std::vector<Number> on_cpu(std::vector<Row> rows) {
  const int n = static_cast<int>(rows.size());
  for (int i = 1; i < n; ++i) {
    const Number factor = divide(rows[i].before, rows[i - 1].middle);
    rows[i].middle = minus(rows[i].middle, times(factor, rows[i - 1].after));
    rows[i].right = minus(rows[i].right, times(factor, rows[i - 1].right));
  }
  std::vector<Number> x(n);
  for (int i = n - 1; i >= 0; --i) {
    if (i + 1 < n) rows[i].right = minus(rows[i].right, times(rows[i].after, x[i + 1]));
    x[i] = divide(rows[i].right, rows[i].middle);
  }
  return x;
}

std::vector<Row> random_rows(int n, int seed) {
  Number state = 12345 + seed;
  const auto next = [&state] { return (state = state * 6364136223846793005 + 1442695040888963407) >> 34; };
  std::vector<Row> rows(n);
  for (Row& row : rows) row = {next(), next(), next(), next()};
  rows.front().before = rows.back().after = 0;
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("tridiagonal", argc, argv, [](gpu::Report& report, int size) {
    const int n = (8 << (2 * size)) - 1, systems = 3 + 2 * size;
    std::vector<Row> all_rows;
    std::vector<Number> want;
    for (int s = 0; s < systems; ++s) {
      const std::vector<Row> rows = random_rows(n, s);
      all_rows.insert(all_rows.end(), rows.begin(), rows.end());
      for (const Number x : on_cpu(rows)) want.push_back(x);
    }
    gpu::Buffer<Row> rows(all_rows);
    gpu::Buffer<Number> x(want.size());
    WAITING_LAUNCH(solve, systems, 1)(rows.data(), x.data(), n);
    gpu::wait("solve");
    report.expect_equal("an unknown", x.to_host(), want);
  });
}
#endif
