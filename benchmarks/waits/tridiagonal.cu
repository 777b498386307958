// Tridiagonal systems of equations modulo a prime, solved by cyclic reduction. A thread drives one system: it
// launches a grid for each level, waits for it, and solves the equation in the middle between the two phases.
//
// Systems differ in size, so their drivers have different numbers of levels. In the tail form each driver is
// a chain of its own. `--variant flat` has a grid for each level of all systems.
#include <algorithm>
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

using Number = unsigned long long;
constexpr Number kPrime = 2147483647;
constexpr int kBlock = 32;

// One row of a system: before * x[i - 1] + middle * x[i] + after * x[i + 1] = right.
struct Row {
  Number before, middle, after, right;
};

// Its size is a power of two less one.
struct System {
  int begin, size;
};

struct Problem {
  const System* systems;
  int count;
  Row* rows;
  Number* x;
};

__host__ __device__ inline Number times(Number a, Number b) { return a * b % kPrime; }
__host__ __device__ inline Number minus(Number a, Number b) { return (a + kPrime - b) % kPrime; }

// a / b, by Fermat's little theorem.
__host__ __device__ inline Number divide(Number a, Number b) {
  for (Number exponent = kPrime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) a = times(a, b);
    b = times(b, b);
  }
  return a;
}

// Takes the unknowns at distance `step` out of a row in the middle between two of them.
__device__ void reduce_row(const Problem& problem, const System& system, int step, int number) {
  Row* const rows = problem.rows + system.begin;
  const int i = (number + 1) * 2 * step - 1;
  if (i + step >= system.size) return;
  const Row low = rows[i - step], row = rows[i], high = rows[i + step];
  const Number left = times(row.before, high.middle), right = times(row.after, low.middle),
               both = times(low.middle, high.middle);
  rows[i].before = minus(0, times(left, low.before));
  rows[i].after = minus(0, times(right, high.after));
  rows[i].middle = minus(minus(times(row.middle, both), times(left, low.after)), times(right, high.before));
  rows[i].right = minus(minus(times(row.right, both), times(left, low.right)), times(right, high.right));
}

// Computes an unknown in the middle between two known ones.
__device__ void substitute_row(const Problem& problem, const System& system, int step, int number) {
  const Row* const rows = problem.rows + system.begin;
  Number* const x = problem.x + system.begin;
  const int i = number * 2 * step + step - 1;
  if (i >= system.size) return;
  Number value = rows[i].right;
  if (i - step >= 0) value = minus(value, times(rows[i].before, x[i - step]));
  if (i + step < system.size) value = minus(value, times(rows[i].after, x[i + step]));
  x[i] = divide(value, rows[i].middle);
}

__device__ void solve_middle(const Problem& problem, const System& system) {
  const int middle = system.begin + system.size / 2;
  problem.x[middle] = divide(problem.rows[middle].right, problem.rows[middle].middle);
}

__host__ __device__ inline unsigned blocks_of(const System& system, int step) {
  return bench::blocks_for(system.size / (2 * step) + 1, kBlock);
}

__global__ void reduce(Problem problem, System system, int step) {
  reduce_row(problem, system, step, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

__global__ void substitute(Problem problem, System system, int step) {
  substitute_row(problem, system, step, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

#ifdef BENCH_WAITS

__global__ void solve(Problem problem) {
  const System system = problem.systems[blockIdx.x];
  int step = 1;
  for (; 2 * step <= system.size; step *= 2) {
    reduce<<<blocks_of(system, step), kBlock>>>(problem, system, step);
    cudaDeviceSynchronize();
  }
  solve_middle(problem, system);
  for (step /= 2; step > 0; step /= 2) {
    substitute<<<blocks_of(system, step), kBlock>>>(problem, system, step);
    cudaDeviceSynchronize();
  }
}

void launch_solve(const Problem& problem, bool, unsigned long long*) { solve<<<problem.count, 1>>>(problem); }
void launch_levels(const Problem&, int) {}

#else

constexpr int kStarters = 32;  // threads of a block that launches the drivers

// The second phase: all unknowns at distance 2 * step are known.
template <bool kCount>
__global__ void go_up(Problem problem, System system, int step, unsigned long long* lost) {
  substitute<<<blocks_of(system, step), kBlock, 0, cudaStreamFireAndForget>>>(problem, system, step);
  bench::count_if_lost<kCount>(lost);
  if (step == 1) return;
  go_up<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(problem, system, step / 2, lost);
  bench::count_if_lost<kCount>(lost);
}

// The first phase.
template <bool kCount>
__global__ void go_down(Problem problem, System system, int step, unsigned long long* lost) {
  if (2 * step > system.size) {
    solve_middle(problem, system);
    if (step == 1) return;
    go_up<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(problem, system, step / 2, lost);
  } else {
    reduce<<<blocks_of(system, step), kBlock, 0, cudaStreamFireAndForget>>>(problem, system, step);
    bench::count_if_lost<kCount>(lost);
    go_down<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(problem, system, 2 * step, lost);
  }
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void solve(Problem problem, unsigned long long* lost) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= problem.count) return;
  go_down<kCount><<<1, 1, 0, cudaStreamFireAndForget>>>(problem, problem.systems[i], 1, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_solve(const Problem& problem, bool counts, unsigned long long* lost) {
  const unsigned blocks = bench::blocks_for(problem.count, kStarters);
  (counts ? solve<true> : solve<false>)<<<blocks, kStarters>>>(problem, lost);
}

// A row of blocks for each system.
__global__ void reduce_all(Problem problem, int step) {
  const System system = problem.systems[blockIdx.y];
  if (2 * step > system.size) return;
  reduce_row(problem, system, step, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

__global__ void substitute_all(Problem problem, int step) {
  const System system = problem.systems[blockIdx.y];
  const int number = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (2 * step > system.size) {
    if (number == 0 && step == (system.size + 1) / 2) solve_middle(problem, system);
  } else {
    substitute_row(problem, system, step, number);
  }
}

void launch_levels(const Problem& problem, int largest) {
  const System system{0, largest};
  const auto systems = static_cast<unsigned>(problem.count);
  int step = 1;
  for (; 2 * step <= largest; step *= 2) {
    reduce_all<<<dim3(blocks_of(system, step), systems), kBlock>>>(problem, step);
  }
  for (; step > 0; step /= 2) {
    substitute_all<<<dim3(blocks_of(system, step), systems), kBlock>>>(problem, step);
  }
}

#endif

// Elimination from the first row to the last; no pivot of these systems is 0.
void solve_on_cpu(std::vector<Row> rows, std::vector<Number>& solutions) {
  const int n = static_cast<int>(rows.size());
  for (int i = 1; i < n; ++i) {
    const Number factor = divide(rows[i].before, rows[i - 1].middle);
    rows[i].middle = minus(rows[i].middle, times(factor, rows[i - 1].after));
    rows[i].right = minus(rows[i].right, times(factor, rows[i - 1].right));
  }
  const size_t begin = solutions.size();
  solutions.resize(begin + rows.size());
  Number* const x = solutions.data() + begin;
  for (int i = n - 1; i >= 0; --i) {
    if (i + 1 < n) rows[i].right = minus(rows[i].right, times(rows[i].after, x[i + 1]));
    x[i] = divide(rows[i].right, rows[i].middle);
  }
}

struct Input {
  std::vector<System> systems;
  std::vector<Row> rows;
  std::vector<Number> solutions;
};

// Systems of 7 to 2^log2_largest - 1 equations.
Input random_input(int count, int log2_largest, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Input input;
  for (int s = 0; s < count; ++s) {
    const int bits = 3 + static_cast<int>(random.below(static_cast<uint32_t>(log2_largest - 2)));
    std::vector<Row> rows((size_t{1} << bits) - 1);
    for (Row& row : rows)
      row = {random.below(kPrime), random.below(kPrime), random.below(kPrime), random.below(kPrime)};
    rows.front().before = rows.back().after = 0;
    input.systems.push_back({static_cast<int>(input.rows.size()), static_cast<int>(rows.size())});
    input.rows.insert(input.rows.end(), rows.begin(), rows.end());
    solve_on_cpu(rows, input.solutions);
  }
  return input;
}

class Tridiagonal final : public bench::StreamProgram {
 public:
  Tridiagonal(const Input& input, const bench::CommonOptions& options)
      : StreamProgram(options),
        systems_(input.systems),
        expected_(input.solutions),
        device_systems_(input.systems),
        input_(input.rows),
        rows_(input.rows.size()),
        x_(input.rows.size()) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("unknowns", expected_, x_.to_host());
  }

 private:
  void restore() override {
    bench::check(cudaMemcpy(rows_.data(), input_.data(), rows_.bytes(), cudaMemcpyDeviceToDevice),
                 "restoring the input");
    x_.fill_bytes(0);
  }
  void launch(bool count) override { launch_solve(problem(), count, lost()); }
  void launch_flat() override { launch_levels(problem(), largest()); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("systems", static_cast<int>(systems_.size()))
        .add("equations", static_cast<int>(expected_.size()));
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    long long launches = 0;
    for (const System& system : systems_) {
      const int levels = levels_of(system.size);
      // A driver in the tail form is launched, and launches itself for each next level and for the middle.
      launches += 2LL * levels + (bench::kWaits ? 0 : 1 + 2LL * levels);
    }
    return {.child_launches = launches,
            .bytes_to_move = static_cast<long long>(rows_.bytes() + x_.bytes()),
            .flat_kernels = 2LL * levels_of(largest()) + 1};
  }

  // Of one phase.
  static int levels_of(int size) {
    int levels = 0;
    while (2 << levels <= size) ++levels;
    return levels;
  }
  [[nodiscard]] int largest() const {
    return std::max_element(systems_.begin(), systems_.end(),
                            [](const System& a, const System& b) { return a.size < b.size; })
        ->size;
  }
  [[nodiscard]] Problem problem() const {
    return {device_systems_.data(), static_cast<int>(systems_.size()), rows_.data(), x_.data()};
  }

  std::vector<System> systems_;
  std::vector<Number> expected_;
  bench::DeviceArray<System> device_systems_;
  bench::DeviceArray<Row> input_;
  bench::DeviceArray<Row> rows_;
  bench::DeviceArray<Number> x_;
};

}  // namespace

int main(int argc, char** argv) {
  long long systems = 512, log2_largest = 10;
  bench::WaitingOptions options("tridiagonal", "cyclic reduction by threads that wait for each level");
  options.integer("systems", systems, 1, "systems to solve");
  options.integer("log2-largest", log2_largest, 3, "logarithm of the number of equations of the largest");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "systems", systems, 1 << 14);
  bench::require_at_most(options.name(), "log2-largest", log2_largest, 14);
  Tridiagonal program(
      random_input(static_cast<int>(systems), static_cast<int>(log2_largest), options.common.seed),
      options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
