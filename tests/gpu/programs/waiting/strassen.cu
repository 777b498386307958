// Multiplies square matrices by Strassen's method. All threads of a block add quadrants, and seven of them
// launch a product of half the size each and wait for it. After a barrier, all threads put the result
// together from the products. Sums and products lie in one pool of memory; each grid uses its own part.
#include "sizes.h"

namespace {

constexpr int kBlockSize = 64, kProducts = 7, kLeaf = 8;  // leaves are multiplied directly

// The unsigned integers in the pool that a product needs, with the products within it.
__host__ __device__ int pool_size(int n) {
  int size = 0;
  for (int half = n / 2, grids = 1; half >= kLeaf; half /= 2, grids *= kProducts) {
    size += grids * 3 * kProducts * half * half;
  }
  return size;
}

}  // namespace

extern "C" __global__ void multiply(unsigned* result, const unsigned* left, const unsigned* right, int n,
                                    unsigned* pool);

#ifdef __CUDACC__
namespace {

// Factors of the quadrants in each product's operands, and of the products in each quadrant of the result.
__constant__ int of_left[kProducts][4] = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                                          {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
__constant__ int of_right[kProducts][4] = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                                           {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
__constant__ int of_result[4][kProducts] = {
    {1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}};

__device__ void add_quadrants(unsigned* sum, const unsigned* matrix, const int* factors, int half) {
  for (int i = threadIdx.x; i < half * half; i += kBlockSize) {
    const unsigned* const first = matrix + i / half * 2 * half + i % half;
    const unsigned* const below = first + 2 * half * half;
    sum[i] =
        factors[0] * first[0] + factors[1] * first[half] + factors[2] * below[0] + factors[3] * below[half];
  }
}

__device__ void add_products(unsigned* result, const unsigned* products, int n) {
  const int half = n / 2;
  for (int i = threadIdx.x; i < n * n; i += kBlockSize) {
    const int row = i / n, column = i % n;
    const int* const factors = of_result[2 * (row / half) + column / half];
    unsigned sum = 0;
    for (int p = 0; p < kProducts; ++p) {
      sum += factors[p] * products[(p * half + row % half) * half + column % half];
    }
    result[i] = sum;
  }
}

__device__ void multiply_directly(unsigned* result, const unsigned* left, const unsigned* right) {
  const int row = threadIdx.x / kLeaf, column = threadIdx.x % kLeaf;
  unsigned sum = 0;
  for (int i = 0; i < kLeaf; ++i) sum += left[row * kLeaf + i] * right[i * kLeaf + column];
  result[threadIdx.x] = sum;
}

}  // namespace

extern "C" __global__ void multiply(unsigned* result, const unsigned* left, const unsigned* right, int n,
                                    unsigned* pool) {
  if (n == kLeaf) {
    multiply_directly(result, left, right);
    return;
  }
  const int half = n / 2, area = half * half;
  unsigned* const lefts = pool;
  unsigned* const rights = lefts + kProducts * area;
  unsigned* const products = rights + kProducts * area;
  for (int p = 0; p < kProducts; ++p) {
    add_quadrants(lefts + p * area, left, of_left[p], half);
    add_quadrants(rights + p * area, right, of_right[p], half);
  }
  __syncthreads();
  const int p = threadIdx.x;
  if (p < kProducts) {
    unsigned* const rest = products + kProducts * area + p * pool_size(half);
    multiply<<<1, kBlockSize>>>(products + p * area, lefts + p * area, rights + p * area, half, rest);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  add_products(result, products, n);
}
#endif

#ifndef __CUDACC_RTC__
#include <random>

namespace {

std::vector<unsigned> random_matrix(int n, int seed) {
  std::mt19937 random(seed);
  std::vector<unsigned> matrix(n * n);
  for (unsigned& value : matrix) value = static_cast<unsigned>(random());
  return matrix;
}

std::vector<unsigned> on_cpu(const std::vector<unsigned>& left, const std::vector<unsigned>& right, int n) {
  std::vector<unsigned> result(left.size());
  for (int i = 0; i < n * n * n; ++i) {
    const int row = i / n / n, column = i / n % n, at = i % n;
    result[row * n + column] += left[row * n + at] * right[at * n + column];
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("strassen", argc, argv, [](gpu::Report& report, int size) {
    const int n = 16 << size;
    const std::vector<unsigned> left = random_matrix(n, 1), right = random_matrix(n, 2);
    const gpu::Buffer<unsigned> a(left), b(right), result(left.size()), pool(pool_size(n));
    WAITING_LAUNCH(multiply, 1, kBlockSize)(result.data(), a.data(), b.data(), n, pool.data());
    gpu::wait("multiply");
    report.expect_equal("a value of the product", result.to_host(), on_cpu(left, right, n));
  });
}
#endif
