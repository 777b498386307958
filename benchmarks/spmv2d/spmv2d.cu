// Sparse matrix-vector product y = scale * W * A * x with a child kernel for every long row.
//
// The second benchmark program exists because its shapes differ from BFS in everything that matters to a
// rewriter: two translation units, a child that takes a structure by value and runs 16 x 4 threads on a
// two-dimensional grid, constant memory and a __device__ counter in the child's unit, double-precision
// atomics, a fire-and-forget stream, and rows that the parent thread finishes itself because they are too
// short to be worth a launch.
//
// All numbers are small whole numbers or halves, so every sum is exact whatever the order of the additions,
// and results are compared for equality. Lost launches are visible at once: their rows stay zero.
//
// `--variant flat` gives every row a warp and uses no dynamic parallelism.
#include <climits>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../common/cuda_check.h"
#include "../common/harness.h"
#include "../common/random.h"
#include "row_product.h"

constexpr int kParentBlock = 256;
constexpr int kFlatBlock = 256;
constexpr int kLongRow = 64;  // shorter rows are done by the parent's thread
constexpr int kEntriesPerChildThread = 4;
constexpr double kScale = 0.5;

struct Matrix {
  const int* first;  // where each row's entries begin
  const int* columns;
  const float* values;
  const double* x;
  double* y;
  int rows;
};

__host__ __device__ constexpr float row_weight(int row) { return static_cast<float>(row % 3 + 1); }

__host__ __device__ constexpr unsigned child_grid_x(int entries) {
  constexpr int per_column = kChildBlockX * kChildBlockY * kChildGridY * kEntriesPerChildThread;
  return static_cast<unsigned>((entries + per_column - 1) / per_column);
}

__device__ double short_row(const Matrix& m, int begin, int end) {
  double sum = 0;
  for (int e = begin; e < end; ++e) sum += static_cast<double>(m.values[e]) * m.x[m.columns[e]];
  return sum;
}

__global__ void multiply(Matrix m) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m.rows) return;
  const int begin = m.first[row];
  const int end = m.first[row + 1];
  if (end - begin < kLongRow) {
    m.y[row] = short_row(m, begin, end) * row_weight(row) * scale_factor;
    return;
  }
  m.y[row] = 0;
  const RowWork work = {m.values, m.columns, m.x, m.y + row, begin, end, row_weight(row)};
  row_product<<<dim3(child_grid_x(end - begin), kChildGridY), dim3(kChildBlockX, kChildBlockY), 0,
                cudaStreamFireAndForget>>>(work);
}

// The same, except that it asks whether the launch was accepted.
__global__ void multiply_counting(Matrix m, unsigned long long* lost) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m.rows) return;
  const int begin = m.first[row];
  const int end = m.first[row + 1];
  if (end - begin < kLongRow) {
    m.y[row] = short_row(m, begin, end) * row_weight(row) * scale_factor;
    return;
  }
  m.y[row] = 0;
  const RowWork work = {m.values, m.columns, m.x, m.y + row, begin, end, row_weight(row)};
  row_product<<<dim3(child_grid_x(end - begin), kChildGridY), dim3(kChildBlockX, kChildBlockY), 0,
                cudaStreamFireAndForget>>>(work);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(lost, 1ULL);
}

__global__ void multiply_flat(Matrix m) {
  const int row = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (row >= m.rows) return;  // whole warps leave together
  const int end = m.first[row + 1];
  double sum = 0;
  for (int e = m.first[row] + static_cast<int>(threadIdx.x % 32); e < end; e += 32) {
    sum += static_cast<double>(m.values[e]) * m.x[m.columns[e]];
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffU, sum, distance);
  if (threadIdx.x % 32 == 0) m.y[row] = sum * row_weight(row) * scale_factor;
}

namespace {

struct HostMatrix {
  std::vector<int> first = {0};
  std::vector<int> columns;
  std::vector<float> values;
  std::vector<double> x;

  [[nodiscard]] int rows() const { return static_cast<int>(first.size()) - 1; }
};

// One row in `long_every` has between half and one and a half times `long_length` entries, the others 4
// to 32.
HostMatrix random_matrix(int rows, int long_every, int long_length, uint64_t seed) {
  bench::Random random(seed);
  HostMatrix m;
  for (int row = 0; row < rows; ++row) {
    const bool is_long = random.below(static_cast<uint32_t>(long_every)) == 0;
    const uint32_t entries = is_long ? long_length / 2 + random.below(static_cast<uint32_t>(long_length) + 1)
                                     : 4 + random.below(29);
    for (uint32_t i = 0; i < entries; ++i) {
      m.columns.push_back(static_cast<int>(random.below(static_cast<uint32_t>(rows))));
      m.values.push_back(static_cast<float>(static_cast<int>(random.below(9)) - 4));
    }
    m.first.push_back(static_cast<int>(m.columns.size()));
    m.x.push_back(random.below(8));
  }
  return m;
}

std::vector<double> cpu_product(const HostMatrix& m) {
  std::vector<double> y(m.rows());
  for (int row = 0; row < m.rows(); ++row) {
    double sum = 0;
    for (int e = m.first[row]; e < m.first[row + 1]; ++e) {
      sum += static_cast<double>(m.values[e]) * m.x[m.columns[e]];
    }
    y[row] = sum * row_weight(row) * kScale;
  }
  return y;
}

class Spmv : public bench::Benchmark {
 public:
  Spmv(HostMatrix matrix, std::string variant)
      : matrix_(std::move(matrix)),
        expected_(cpu_product(matrix_)),
        variant_(std::move(variant)),
        first_(matrix_.first),
        columns_(matrix_.columns),
        values_(matrix_.values),
        x_(matrix_.x),
        y_(matrix_.rows()),
        lost_(1) {
    set_scale(kScale);
    for (int row = 0; row < matrix_.rows(); ++row) {
      const int entries = matrix_.first[row + 1] - matrix_.first[row];
      if (entries < kLongRow) continue;
      ++long_rows_;
      expected_blocks_ += child_grid_x(entries) * kChildGridY;
    }
  }

  void reset() override {
    y_.fill_bytes(0xff);
    lost_.fill_bytes(0);
    reset_row_blocks();
  }

  void run() override {
    if (variant_ == "flat") {
      const long long threads = static_cast<long long>(matrix_.rows()) * 32;
      multiply_flat<<<static_cast<unsigned>((threads + kFlatBlock - 1) / kFlatBlock), kFlatBlock>>>(
          on_device());
    } else {
      multiply<<<parent_blocks(), kParentBlock>>>(on_device());
    }
    bench::check(cudaGetLastError(), "launching the product");
  }

  long long count_lost_launches() override {
    if (variant_ == "flat") return 0;
    multiply_counting<<<parent_blocks(), kParentBlock>>>(on_device(), lost_.data());
    bench::check(cudaGetLastError(), "launching the product");
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    const std::vector<double> y = y_.to_host();
    int different = 0;
    int example = -1;
    for (int row = 0; row < matrix_.rows(); ++row) {
      if (y[row] == expected_[row]) continue;
      if (different++ == 0) example = row;
    }
    if (different != 0) {
      return std::to_string(different) + " rows differ, row " + std::to_string(example) + " got " +
             std::to_string(y[example]) + " instead of " + std::to_string(expected_[example]);
    }
    if (variant_ == "flat" || row_blocks() == expected_blocks_) return "";
    return std::to_string(row_blocks()) + " child blocks ran instead of " + std::to_string(expected_blocks_);
  }

  void describe(bench::JsonObject& report) const override {
    report.add("rows", matrix_.rows()).add("entries", matrix_.first.back()).add("long_rows", long_rows_);
    report.add("child_launches", variant_ == "flat" ? 0 : long_rows_);
    // Each entry's value and column; each row's extent and elements of x and y.
    report.add("bytes_to_move", 8LL * matrix_.first.back() + 20LL * matrix_.rows());
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    return bench::HostWork{.kernels = 1, .parents = variant_ == "flat" ? 0 : 1};
  }

 private:
  [[nodiscard]] Matrix on_device() const {
    return {first_.data(), columns_.data(), values_.data(), x_.data(), y_.data(), matrix_.rows()};
  }
  [[nodiscard]] unsigned parent_blocks() const {
    return static_cast<unsigned>((matrix_.rows() + kParentBlock - 1) / kParentBlock);
  }

  HostMatrix matrix_;
  std::vector<double> expected_;
  std::string variant_;
  int long_rows_ = 0;
  unsigned expected_blocks_ = 0;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> columns_;
  bench::DeviceArray<float> values_;
  bench::DeviceArray<double> x_;
  bench::DeviceArray<double> y_;
  bench::DeviceArray<unsigned long long> lost_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long rows = 40000;
  long long long_every = 8;
  long long long_length = 1500;
  bench::Options options("spmv2d", "sparse matrix-vector product with one child kernel per long row");
  options.integer("rows", rows, 1, "rows and columns of the random matrix");
  options.integer("long-every", long_every, 1, "one row in this many is long");
  options.integer("long-length", long_length, 2 * kLongRow, "average number of entries in a long row");
  common.add_to(options);
  options.parse(argc, argv);
  if (long_every > INT_MAX || rows * (long_length + long_length / 2 + 1) > INT_MAX) {
    std::fprintf(stderr, "spmv2d: the matrix is too large\n");
    return 2;
  }
  bench::require_device("spmv2d");
  Spmv spmv(random_matrix(static_cast<int>(rows), static_cast<int>(long_every), static_cast<int>(long_length),
                          common.seed),
            common.variant);
  return bench::run_benchmark("spmv2d", common, spmv);
}
