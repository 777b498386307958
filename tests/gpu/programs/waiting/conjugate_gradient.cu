// The method of conjugate gradients for a symmetric system modulo a prime, where n steps give the exact
// solution. One thread drives it: it launches grids for the products, waits for them, and divides their
// results.
#include "sizes.h"

namespace {

using Number = unsigned long long;
constexpr Number prime = 2147483647;

__host__ __device__ Number times(Number a, Number b) { return a * b % prime; }

// a / b, by Fermat's little theorem.
__host__ __device__ Number divide(Number a, Number b) {
  for (Number exponent = prime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) a = times(a, b);
    b = times(b, b);
  }
  return a;
}

}  // namespace

// At first, the residual and the direction are the right side, and x is 0. There is a pair of sums for each
// step.
extern "C" __global__ void solve(const Number* matrix, Number* x, Number* residual, Number* direction,
                                 Number* product, Number* sums, int n);

#ifdef __CUDACC__
namespace {

__global__ void multiply(const Number* matrix, const Number* vector, Number* product, int n) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n) return;
  Number sum = 0;
  for (int i = 0; i < n; ++i) sum = (sum + times(matrix[row * n + i], vector[i])) % prime;
  product[row] = sum;
}

__global__ void dot(const Number* a, const Number* b, Number* sum, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(sum, times(a[i], b[i]));
}

// a = factor * a + other_factor * b
__global__ void combine(Number* a, Number factor, const Number* b, Number other_factor, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) a[i] = (times(factor, a[i]) + times(other_factor, b[i])) % prime;
}

}  // namespace

extern "C" __global__ void solve(const Number* matrix, Number* x, Number* residual, Number* direction,
                                 Number* product, Number* sums, int n) {
  const int blocks = (n + 7) / 8;
  dot<<<blocks, 8>>>(residual, residual, sums, n);
  cudaDeviceSynchronize();
  Number length = sums[0] % prime;
  for (int step = 0; step < n && length != 0; ++step) {
    sums += 2;
    multiply<<<blocks, 8>>>(matrix, direction, product, n);
    dot<<<blocks, 8>>>(direction, product, sums, n);
    cudaDeviceSynchronize();
    const Number factor = divide(length, sums[0] % prime);
    combine<<<blocks, 8>>>(x, 1, direction, factor, n);
    combine<<<blocks, 8>>>(residual, 1, product, prime - factor, n);
    dot<<<blocks, 8>>>(residual, residual, sums + 1, n);
    cudaDeviceSynchronize();
    const Number next = sums[1] % prime;
    combine<<<blocks, 8>>>(direction, divide(next, length), residual, 1, n);
    length = next;
  }
}
#endif

#ifndef __CUDACC_RTC__
namespace {

// Elimination; no pivot of these matrices is 0.
std::vector<Number> on_cpu(std::vector<Number> matrix, std::vector<Number> right, int n) {
  for (int k = 0; k < n; ++k) {
    for (int row = 0; row < n; ++row) {
      if (row == k) continue;
      const Number factor = prime - divide(matrix[row * n + k], matrix[k * n + k]);
      for (int i = k; i < n; ++i) {
        matrix[row * n + i] = (matrix[row * n + i] + times(factor, matrix[k * n + i])) % prime;
      }
      right[row] = (right[row] + times(factor, right[k])) % prime;
    }
  }
  for (int k = 0; k < n; ++k) right[k] = divide(right[k], matrix[k * n + k]);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("conjugate_gradient", argc, argv, [](gpu::Report& report, int size) {
    const int n = 3 + 10 * size;
    std::vector<Number> matrix(n * n), right(n);
    Number state = 12345;
    const auto next = [&state] { return (state = state * 6364136223846793005 + 1442695040888963407) >> 34; };
    for (int row = 0; row < n; ++row) {
      right[row] = next();
      for (int i = 0; i <= row; ++i) matrix[row * n + i] = matrix[i * n + row] = next();
    }
    gpu::Buffer<Number> device_matrix(matrix), x(n), residual(right), direction(right), product(n);
    gpu::Buffer<Number> sums(2 * (n + 1));
    WAITING_LAUNCH(solve, 1, 1)
    (device_matrix.data(), x.data(), residual.data(), direction.data(), product.data(), sums.data(), n);
    gpu::wait("solve");
    report.expect_equal("an unknown", x.to_host(), on_cpu(matrix, right, n));
    report.expect_equal("the residual", residual.to_host(), std::vector<Number>(n));
  });
}
#endif
