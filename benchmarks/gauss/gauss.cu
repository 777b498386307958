// Gaussian elimination: a step for each column, and each step is two tail launches.
//
// A kernel of one thread launches into the tail-launch stream the elimination of a column from all rows
// below, and behind it itself for the next column. Tail launches run one after another, so a step finds all
// that the one before it has subtracted. Behind the last column it launches the substitution, which solves
// from the last row up.
//
// The matrix is random with a heavy diagonal, so no row has to be swapped.
//
// `--variant flat` launches the steps from the host.
#include <cstdint>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 128;
constexpr int kSolveBlock = 256;

// `n` rows of n coefficients and a right side, which becomes the solution.
struct Equations {
  double* values;
  int n;

  __device__ double* row(int i) const { return values + static_cast<size_t>(i) * (n + 1); }
};

// Subtracts a column's row from those below. A row of blocks for each of them, a thread for each element
// behind the column. What is left in the column itself is not read any more.
__global__ void subtract(Equations equations, int column) {
  double* const row = equations.row(column + 1 + static_cast<int>(blockIdx.y));
  const double* const pivot = equations.row(column);
  const int i = column + 1 + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= equations.n) row[i] -= row[column] / pivot[column] * pivot[i];
}

// One block solves all rows, from the last one up.
__global__ void __launch_bounds__(kSolveBlock) substitute(Equations equations) {
  const int n = equations.n;
  for (int solved = n - 1; solved >= 0; --solved) {
    double* const own = equations.row(solved);
    const double x = own[n] / own[solved];
    __syncthreads();
    if (threadIdx.x == 0) own[n] = x;
    for (int i = static_cast<int>(threadIdx.x); i < solved; i += kSolveBlock) {
      double* const row = equations.row(i);
      row[n] -= row[solved] * x;
    }
    __syncthreads();
  }
}

__host__ __device__ inline dim3 grid_of_step(int n, int column) {
  return {bench::blocks_for(n - column, kBlock), static_cast<unsigned>(n - column - 1)};
}

template <bool kCount>
__global__ void eliminate_from(Equations equations, int column, unsigned long long* lost) {
  const int n = equations.n;
  if (column + 1 == n) {
    substitute<<<1, kSolveBlock, 0, cudaStreamTailLaunch>>>(equations);
    bench::count_if_lost<kCount>(lost);
    return;
  }
  subtract<<<grid_of_step(n, column), kBlock, 0, cudaStreamTailLaunch>>>(equations, column);
  bench::count_if_lost<kCount>(lost);
  eliminate_from<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(equations, column + 1, lost);
  bench::count_if_lost<kCount>(lost);
}

namespace {

struct Problem {
  int n;
  std::vector<double> values;
  std::vector<double> solution;
};

// The solution is drawn first, and the right side follows from it.
Problem random_problem(long long n, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Problem problem = {static_cast<int>(n), {}, {}};
  for (int i = 0; i < n; ++i) problem.solution.push_back(2 * random.uniform() - 1);
  for (int row = 0; row < n; ++row) {
    double right_side = 0;
    for (int i = 0; i < n; ++i) {
      const double value = random.uniform() + (i == row ? static_cast<double>(n) : 0.0);
      problem.values.push_back(value);
      right_side += value * problem.solution[i];
    }
    problem.values.push_back(right_side);
  }
  return problem;
}

class Gauss final : public bench::ArrayProgram<double> {
 public:
  Gauss(const Problem& problem, const bench::CommonOptions& options)
      : ArrayProgram(options, "unknowns", problem.values, problem.solution), n_(problem.n) {}

  [[nodiscard]] std::string verify() override {
    std::vector<double> values(static_cast<size_t>(n_) * (n_ + 1));
    bench::check(cudaMemcpy(values.data(), data(), values.size() * sizeof(double), cudaMemcpyDeviceToHost),
                 "copy from the device");
    std::vector<double> found;
    for (int i = 0; i < n_; ++i) found.push_back(values[static_cast<size_t>(i) * (n_ + 1) + n_]);
    return bench::differences_beyond(what(), expected(), found, 1e-9, 1e-9);
  }

 private:
  [[nodiscard]] Equations equations() const { return {data(), n_}; }

  void launch(bool count) override {
    (count ? eliminate_from<true> : eliminate_from<false>)<<<1, 1>>>(equations(), 0, lost());
  }

  void launch_flat() override {
    for (int column = 0; column + 1 < n_; ++column)
      subtract<<<grid_of_step(n_, column), kBlock>>>(equations(), column);
    substitute<<<1, kSolveBlock>>>(equations());
  }

  void describe_sizes(bench::JsonObject& report) const override { report.add("unknowns", n_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    const long long n = n_;
    return {.child_launches = 2 * (n - 1) + 1, .bytes_to_move = 8 * n * (n + 2), .flat_kernels = n};
  }

  int n_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long unknowns = 256;
  bench::Options options("gauss", "Gaussian elimination with two tail launches for each column");
  options.integer("unknowns", unknowns, 2, "unknowns, and equations");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("gauss", "unknowns", unknowns, 16384);
  bench::require_device("gauss");
  Gauss program(random_problem(unknowns, common.seed), common);
  return bench::run_benchmark("gauss", common, program);
}
