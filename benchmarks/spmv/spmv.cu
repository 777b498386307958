// Sparse matrix-vector product y = A x with a child kernel for every long row, as in the papers on launch
// consolidation.
//
// A thread per row; it sums a short row itself and launches one child block over a long one, because in real
// graphs a few rows are hundreds of times as long as the others and would keep a whole warp waiting. The
// child reduces its partial sums in shared memory and adds the result to y.
//
// All numbers are small whole numbers, so every sum is exact in single precision whatever the order of the
// additions, and results are compared for equality. Every row that has entries has a positive sum, so a lost
// launch shows.
//
// With `--change-after N` the products from the N-th on have rows of 64 times as many entries each: a program
// whose tasks are small at first, and large later.
//
// `--variant flat` deals the entries out evenly among warps, without dynamic parallelism and without
// preparing anything; `--variant library` is cuSPARSE with its preparation done beforehand.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../common/block_sum.cuh"
#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "../common/random.h"
#include "../common/row_sums.cuh"
#include "cusparse_product.h"

constexpr int kParentBlock = 128;
constexpr int kChildBlock = 64;

struct Matrix {
  const int* first;  // where each row's entries begin
  const int* columns;
  const float* values;
  const float* x;
  float* y;  // zero before
  int rows;
};

__global__ void row_product(Matrix m, int row, int begin, int end) {
  float sum = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x)) {
    sum += m.values[e] * m.x[m.columns[e]];
  }
  sum = bench::block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(&m.y[row], sum);
}

template <bool kCount>
__global__ void multiply(Matrix m, int threshold, unsigned long long* lost) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m.rows) return;
  const int begin = m.first[row];
  const int end = m.first[row + 1];
  if (end - begin < threshold) {
    float sum = 0;
    for (int e = begin; e < end; ++e) sum += m.values[e] * m.x[m.columns[e]];
    m.y[row] = sum;
  } else {
    row_product<<<1, kChildBlock>>>(m, row, begin, end);
    bench::count_if_lost<kCount>(lost);
  }
}

// An entry's product. The matrix is read once and must not push x out of the caches.
struct Products {
  struct Loaded {
    int column;
    float value;
  };
  const int* columns;
  const float* values;
  const float* x;

  __device__ Loaded load(int e) const { return {__ldcs(columns + e), __ldcs(values + e)}; }
  __device__ float value(const Loaded& entry) const { return entry.value * __ldg(x + entry.column); }
};

__global__ void __launch_bounds__(bench::kRowSumsBlock, bench::kRowSumsResident)
    multiply_flat(Matrix m, int entries) {
  bench::sum_rows(bench::RowSums<float>{m.first, m.rows, entries, m.y}, Products{m.columns, m.values, m.x});
}

namespace {

constexpr int kLargestNumber = 4;  // of the matrix and of x
constexpr int kLargestSum = 1 << 24;
constexpr size_t kRowsInOne = 64;

// From 1 to kLargestNumber.
int number(uint64_t key) { return 1 + static_cast<int>(bench::mix(key) % kLargestNumber); }

uint64_t entry_key(size_t row, int column) { return (static_cast<uint64_t>(row) << 32) + column; }

std::vector<float> matrix_values(const bench::Graph& pattern) {
  std::vector<float> values(pattern.edges());
  bench::parallel_for(pattern.vertices(), [&](size_t row) {
    for (int e = pattern.first[row]; e < pattern.first[row + 1]; ++e) {
      values[e] = static_cast<float>(number(entry_key(row, pattern.neighbour[e])));
    }
  });
  return values;
}

std::vector<float> vector_values(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>(number(~static_cast<uint64_t>(i)));
  return values;
}

std::vector<float> cpu_product(const bench::Graph& pattern, const std::vector<float>& values,
                               const std::vector<float>& x) {
  std::vector<float> y(pattern.vertices());
  bench::parallel_for(pattern.vertices(), [&](size_t row) {
    float sum = 0;
    for (int e = pattern.first[row]; e < pattern.first[row + 1]; ++e) {
      sum += values[e] * x[pattern.neighbour[e]];
    }
    y[row] = sum;
  });
  return y;
}

// The same entries in rows of 64 times as many, with as many rows, the last ones empty.
bench::Graph with_longer_rows(const bench::Graph& pattern) {
  bench::Graph longer = pattern;
  const size_t rows = pattern.vertices();
  for (size_t row = 0; row <= rows; ++row)
    longer.first[row] = pattern.first[std::min(row * kRowsInOne, rows)];
  return longer;
}

bench::Graph load_pattern(const bench::GraphInput& input, uint64_t seed) {
  bench::Graph pattern = input.load(seed);
  for (int row = 0; row < pattern.vertices(); ++row) {
    if (pattern.degree(row) <= kLargestSum / (kLargestNumber * kLargestNumber)) continue;
    std::fprintf(stderr, "spmv: row %d is too long for exact sums in single precision\n", row);
    std::exit(2);
  }
  return pattern;
}

class Spmv : public bench::Benchmark {
 public:
  Spmv(const bench::GraphInput& input, const bench::CommonOptions& options, int threshold,
       long long change_after)
      : input_(input),
        threshold_(threshold),
        change_after_(change_after),
        pattern_(load_pattern(input, options.seed)),
        variant_(options.variant),
        first_(pattern_.first),
        columns_(pattern_.neighbour),
        values_(pattern_.edges()),
        x_(pattern_.vertices()),
        y_(pattern_.vertices()),
        lost_(1) {
    const std::vector<float> values = matrix_values(pattern_);
    const std::vector<float> x = vector_values(pattern_.vertices());
    expected_ = cpu_product(pattern_, values, x);
    bench::check(cudaMemcpy(values_.data(), values.data(), values_.bytes(), cudaMemcpyHostToDevice),
                 "copying the matrix");
    bench::check(cudaMemcpy(x_.data(), x.data(), x_.bytes(), cudaMemcpyHostToDevice), "copying x");
    if (variant_ != "library") return;
    library_ = std::make_unique<CusparseProduct>(CusparseProblem{pattern_.vertices(), pattern_.edges(),
                                                                 first_.data(), columns_.data(),
                                                                 values_.data(), x_.data(), y_.data()});
  }

  void reset() override {
    if (change_after_ != 0 && runs_++ == change_after_) change();
    y_.fill_bytes(0x41);  // 12.08, which is no row's sum
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "library") {
      library_->multiply();
    } else if (variant_ == "flat") {
      multiply_evenly();
    } else {
      multiply_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    multiply_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("elements", expected_, y_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    int long_rows = 0;
    for (int row = 0; row < pattern_.vertices(); ++row) {
      long_rows += pattern_.degree(row) >= threshold_ ? 1 : 0;
    }
    input_.describe(report, pattern_);
    report.add("threshold", threshold_);
    report.add("child_launches", variant_ == "cdp" ? long_rows : 0);
    // Each entry's column and value; each row's extent, element of x and element of y.
    report.add("bytes_to_move", 8LL * pattern_.edges() + 12LL * pattern_.vertices());
    if (library_ != nullptr) report.add("algorithm", library_->algorithm());
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    if (variant_ == "library") return std::nullopt;
    if (variant_ == "cdp") return bench::HostWork{.kernels = 1, .parents = 1, .fills = 1};
    return bench::HostWork{.kernels = pattern_.edges() > 0 ? 1 : 0, .fills = 1};
  }

 private:
  [[nodiscard]] Matrix on_device() const {
    return {first_.data(), columns_.data(), values_.data(), x_.data(), y_.data(), pattern_.vertices()};
  }

  void change() {
    pattern_ = with_longer_rows(pattern_);
    expected_ = cpu_product(pattern_, values_.to_host(), x_.to_host());
    bench::check(cudaMemcpy(first_.data(), pattern_.first.data(), first_.bytes(), cudaMemcpyHostToDevice),
                 "copying the longer rows");
  }

  void clear_result() { bench::check(cudaMemsetAsync(y_.data(), 0, y_.bytes()), "clearing the result"); }

  template <bool kCount>
  void multiply_with_children() {
    clear_result();
    multiply<kCount><<<bench::blocks_for(pattern_.vertices(), kParentBlock), kParentBlock>>>(
        on_device(), threshold_, lost_.data());
    bench::check(cudaGetLastError(), "launching the product");
  }

  void multiply_evenly() {
    clear_result();
    if (pattern_.edges() == 0) return;
    multiply_flat<<<bench::blocks_for(pattern_.edges(), bench::kRowSumsPerBlock), bench::kRowSumsBlock>>>(
        on_device(), pattern_.edges());
    bench::check(cudaGetLastError(), "launching the product");
  }

  bench::GraphInput input_;
  int threshold_;
  long long change_after_, runs_ = 0;
  bench::Graph pattern_;
  std::vector<float> expected_;
  std::string variant_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> columns_;
  bench::DeviceArray<float> values_;
  bench::DeviceArray<float> x_;
  bench::DeviceArray<float> y_;
  bench::DeviceArray<unsigned long long> lost_;
  std::unique_ptr<CusparseProduct> library_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::GraphInput input;
  input.kind = "citation";
  input.vertices = 434102;
  input.degree = 74;
  long long threshold = 64, change_after = 0;
  bench::Options options("spmv", "sparse matrix-vector product with one child block per long row");
  options.integer("threshold", threshold, 1, "rows with at least this many entries are left to a child");
  input.add_to(options);
  options.integer("change-after", change_after, 0,
                  "products with short rows before those with long ones; 0: all");
  common.add_to(options);
  options.parse(argc, argv);
  if (change_after > 0 && common.variant == "library") {
    std::fprintf(stderr, "spmv: the library's matrix does not change\n");
    return 2;
  }
  if (threshold > INT_MAX) {
    std::fprintf(stderr, "spmv: a threshold above %d is no threshold\n", INT_MAX);
    return 2;
  }
  bench::require_device("spmv");
  if (common.variant == "library") require_cusparse();
  Spmv spmv(input, common, static_cast<int>(threshold), change_after);
  return bench::run_benchmark("spmv", common, spmv);
}
