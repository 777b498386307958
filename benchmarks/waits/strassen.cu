// Multiplies square matrices by Strassen's method. A block adds quadrants, launches seven blocks for products
// of half the size and waits for them. Then it puts the result together from the products.
//
// The tail launch that does so is for all products of a grid. `--variant flat` has grids for all products of
// a size, on the way down and on the way back, with several blocks for each large one.
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kLeaf = 16;  // smaller matrices are multiplied directly, with a thread for each element
constexpr int kBlock = kLeaf * kLeaf;
constexpr int kProducts = 7;

// Factors of the quadrants in each product's operands, and of the products in each quadrant of the result.
__constant__ int of_left[kProducts][4] = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                                          {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
__constant__ int of_right[kProducts][4] = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                                           {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
__constant__ int of_result[4][kProducts] = {
    {1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}};

// The integers that a product needs beside its result, with those of the products within it.
__host__ __device__ inline int pool_size(int n) {
  int size = 0;
  for (int half = n / 2, grids = 1; half >= kLeaf; half /= 2, grids *= kProducts) {
    size += grids * 3 * kProducts * half * half;
  }
  return size;
}

// A product of two matrices of n * n elements. Its pool holds the operands and the results of the products
// within it, and then their pools.
struct Product {
  unsigned* result;
  const unsigned* left;
  const unsigned* right;
  unsigned* pool;
  int n;

  __host__ __device__ bool is_leaf() const { return n == kLeaf; }
  __host__ __device__ unsigned* lefts() const { return pool; }
  __host__ __device__ unsigned* rights() const { return pool + kProducts * (n / 2) * (n / 2); }
  __host__ __device__ unsigned* products() const { return pool + 2 * kProducts * (n / 2) * (n / 2); }
  __host__ __device__ Product within(int p) const {
    const int half = n / 2, area = half * half;
    return {products() + p * area, lefts() + p * area, rights() + p * area,
            products() + kProducts * area + p * pool_size(half), half};
  }
};

__device__ unsigned sum_of_quadrants(const unsigned* matrix, const int* factors, int half, int i) {
  const unsigned* const first = matrix + i / half * 2 * half + i % half;
  const unsigned* const below = first + 2 * half * half;
  return factors[0] * first[0] + factors[1] * first[half] + factors[2] * below[0] + factors[3] * below[half];
}

// Computes the operands of the products within, with `threads` threads of which this is one.
__device__ void add_quadrants(const Product& product, int thread, int threads) {
  const int half = product.n / 2, area = half * half;
  for (int p = 0; p < kProducts; ++p) {
    for (int i = thread; i < area; i += threads) {
      product.lefts()[p * area + i] = sum_of_quadrants(product.left, of_left[p], half, i);
      product.rights()[p * area + i] = sum_of_quadrants(product.right, of_right[p], half, i);
    }
  }
}

__device__ void add_products(const Product& product, int thread, int threads) {
  const int n = product.n, half = n / 2;
  for (int i = thread; i < n * n; i += threads) {
    const int row = i / n, column = i % n;
    const int* const factors = of_result[2 * (row / half) + column / half];
    unsigned sum = 0;
    for (int p = 0; p < kProducts; ++p) {
      sum += factors[p] * product.products()[(p * half + row % half) * half + column % half];
    }
    product.result[i] = sum;
  }
}

__device__ void multiply_directly(const Product& product) {
  const int row = static_cast<int>(threadIdx.x) / kLeaf, column = static_cast<int>(threadIdx.x) % kLeaf;
  unsigned sum = 0;
  for (int i = 0; i < kLeaf; ++i) sum += product.left[row * kLeaf + i] * product.right[i * kLeaf + column];
  product.result[threadIdx.x] = sum;
}

// The whole product for a grid of one block; otherwise block b works on product b within this one.
__device__ Product product_of_block(const Product& of, bool is_whole) {
  return is_whole ? of : of.within(static_cast<int>(blockIdx.x));
}

#ifdef BENCH_WAITS

__global__ void multiply(Product of, bool is_whole) {
  const Product product = product_of_block(of, is_whole);
  if (product.is_leaf()) {
    multiply_directly(product);
    return;
  }
  add_quadrants(product, static_cast<int>(threadIdx.x), kBlock);
  __syncthreads();
  if (threadIdx.x == 0) {
    multiply<<<kProducts, kBlock>>>(product, false);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  add_products(product, static_cast<int>(threadIdx.x), kBlock);
}

void launch_product(const Product& product, bool, unsigned long long*) {
  multiply<<<1, kBlock>>>(product, true);
}
void launch_levels(const Product&) {}

#else

__global__ void finish(Product of, bool is_whole) {
  add_products(product_of_block(of, is_whole), static_cast<int>(threadIdx.x), kBlock);
}

template <bool kCount>
__global__ void multiply(Product of, bool is_whole, unsigned long long* lost) {
  const Product product = product_of_block(of, is_whole);
  if (product.is_leaf()) {
    multiply_directly(product);
    return;
  }
  add_quadrants(product, static_cast<int>(threadIdx.x), kBlock);
  __syncthreads();
  if (threadIdx.x != 0) return;
  multiply<kCount><<<kProducts, kBlock, 0, cudaStreamFireAndForget>>>(product, false, lost);
  bench::count_if_lost<kCount>(lost);
  if (blockIdx.x != 0) return;
  finish<<<gridDim.x, kBlock, 0, cudaStreamTailLaunch>>>(of, is_whole);
  bench::count_if_lost<kCount>(lost);
}

void launch_product(const Product& product, bool counts, unsigned long long* lost) {
  (counts ? multiply<true> : multiply<false>)<<<1, kBlock>>>(product, true, lost);
}

// The product at a place of those at that depth.
__device__ Product product_at(Product product, int depth, int place) {
  int places = 1;
  for (int i = 1; i < depth; ++i) places *= kProducts;
  for (; depth > 0; --depth, place %= places, places = max(places / kProducts, 1)) {
    product = product.within(place / places);
  }
  return product;
}

// A row of blocks for each product of a depth.
__global__ void go_down(Product whole, int depth) {
  const Product product = product_at(whole, depth, static_cast<int>(blockIdx.y));
  if (product.is_leaf()) {
    multiply_directly(product);
    return;
  }
  add_quadrants(product, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
                static_cast<int>(gridDim.x * blockDim.x));
}

__global__ void go_up(Product whole, int depth) {
  add_products(product_at(whole, depth, static_cast<int>(blockIdx.y)),
               static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
               static_cast<int>(gridDim.x * blockDim.x));
}

void launch_levels(const Product& product) {
  int depth = 0, n = product.n, places = 1;
  for (; n > kLeaf; ++depth, n /= 2, places *= kProducts) {
    go_down<<<dim3(bench::blocks_for(n * n / 4, kBlock), places), kBlock>>>(product, depth);
  }
  go_down<<<dim3(1, places), kBlock>>>(product, depth);
  while (depth-- > 0) {
    n *= 2;
    places /= kProducts;
    go_up<<<dim3(bench::blocks_for(n * n, kBlock), places), kBlock>>>(product, depth);
  }
}

#endif

std::vector<unsigned> random_matrix(int n, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<unsigned> matrix(static_cast<size_t>(n) * n);
  for (unsigned& value : matrix) value = static_cast<unsigned>(random.next());
  return matrix;
}

std::vector<unsigned> cpu_product(const std::vector<unsigned>& left, const std::vector<unsigned>& right,
                                  size_t n) {
  std::vector<unsigned> result(left.size());
  for (size_t row = 0; row < n; ++row) {
    for (size_t i = 0; i < n; ++i) {
      const unsigned factor = left[row * n + i];
      for (size_t column = 0; column < n; ++column)
        result[row * n + column] += factor * right[i * n + column];
    }
  }
  return result;
}

class Strassen final : public bench::StreamProgram {
 public:
  Strassen(int n, const bench::CommonOptions& options)
      : Strassen(n, random_matrix(n, options.seed), random_matrix(n, options.seed + 1), options) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("elements", expected_, result_.to_host());
  }

 private:
  Strassen(int n, const std::vector<unsigned>& left, const std::vector<unsigned>& right,
           const bench::CommonOptions& options)
      : StreamProgram(options),
        n_(n),
        expected_(cpu_product(left, right, static_cast<size_t>(n))),
        left_(left),
        right_(right),
        result_(left.size()),
        pool_(static_cast<size_t>(pool_size(n))) {}

  void restore() override { result_.fill_bytes(0); }
  void launch(bool count) override { launch_product(product(), count, lost()); }
  void launch_flat() override { launch_levels(product()); }
  void describe_sizes(bench::JsonObject& report) const override { report.add("rows", n_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    long long launches = 0, tails = 0, products = 1, levels = 1;
    for (int n = n_; n > kLeaf; n /= 2, products *= kProducts, ++levels) {
      launches += products;
      tails += products == 1 ? 1 : products / kProducts;
    }
    return {.child_launches = launches + (bench::kWaits ? 0 : tails),
            .bytes_to_move = 3LL * static_cast<long long>(result_.bytes()),
            .flat_kernels = 2 * levels - 1};
  }
  [[nodiscard]] Product product() const {
    return {result_.data(), left_.data(), right_.data(), pool_.data(), n_};
  }

  int n_;
  std::vector<unsigned> expected_;
  bench::DeviceArray<unsigned> left_;
  bench::DeviceArray<unsigned> right_;
  bench::DeviceArray<unsigned> result_;
  bench::DeviceArray<unsigned> pool_;
};

}  // namespace

int main(int argc, char** argv) {
  long long log2_rows = 8;
  bench::WaitingOptions options("strassen", "Strassen's products by blocks that wait for smaller ones");
  options.integer("log2-rows", log2_rows, 4, "logarithm of the number of rows and columns");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "log2-rows", log2_rows, 10);
  Strassen program(1 << log2_rows, options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
