// The method of conjugate gradients for a symmetric system modulo a prime, where n steps give the exact
// solution. One thread drives it: it launches grids for the products, waits for them, and divides their
// results.
//
// The tail form has a chain of two drivers, which leave the length of the residual in memory. In `--variant
// flat` the host launches all steps. There the grids divide for themselves, so that the host reads nothing.
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

using Number = unsigned long long;
constexpr Number kPrime = 2147483647;
constexpr int kRows = 8;    // of a block that multiplies, with a warp for each
constexpr int kBlock = 64;  // threads of other blocks
constexpr int kWarp = 32;

// At first, the residual and the direction are the right side, and x is 0. There is a pair of sums for each
// step, and one before the first.
struct System {
  const Number* matrix;
  Number* x;
  Number* residual;
  Number* direction;
  Number* product;
  Number* sums;
  int n;

  __device__ Number length(int step) const { return sums[2 * step + 1] % kPrime; }
  __device__ Number* curvature_sum(int step) const { return sums + 2 * step + 2; }
  __device__ Number* length_sum(int step) const { return sums + 2 * step + 1; }
};

__host__ __device__ inline Number times(Number a, Number b) { return a * b % kPrime; }

// a / b, by Fermat's little theorem.
__host__ __device__ inline Number divide(Number a, Number b) {
  for (Number exponent = kPrime - 2; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) a = times(a, b);
    b = times(b, b);
  }
  return a;
}

__host__ __device__ inline unsigned blocks_of(int n) { return bench::blocks_for(n, kBlock); }
__host__ __device__ inline unsigned row_blocks_of(int n) { return bench::blocks_for(n, kRows); }

// A warp for each row.
__global__ void multiply(System system) {
  const int row = static_cast<int>(blockIdx.x * kRows + threadIdx.x / kWarp);
  if (row >= system.n) return;
  Number sum = 0;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < system.n; i += kWarp) {
    sum += times(system.matrix[row * system.n + i], system.direction[i]);
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  if (threadIdx.x % kWarp == 0) system.product[row] = sum % kPrime;
}

__device__ int own_place() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void dot(const Number* a, const Number* b, Number* sum, int n) {
  const int i = own_place();
  if (i < n) atomicAdd(sum, times(a[i], b[i]));
}

__device__ void move(const System& system, Number factor, int i) {
  system.x[i] = (system.x[i] + times(factor, system.direction[i])) % kPrime;
  system.residual[i] = (system.residual[i] + times(kPrime - factor, system.product[i])) % kPrime;
}

__device__ void turn(const System& system, Number factor, int i) {
  system.direction[i] = (system.residual[i] + times(factor, system.direction[i])) % kPrime;
}

__global__ void move_on(System system, Number factor) {
  if (own_place() < system.n) move(system, factor, own_place());
}

__global__ void turn_direction(System system, Number factor) {
  if (own_place() < system.n) turn(system, factor, own_place());
}

#ifdef BENCH_WAITS

__global__ void drive(System system) {
  const int n = system.n;
  const unsigned blocks = blocks_of(n);
  dot<<<blocks, kBlock>>>(system.residual, system.residual, system.length_sum(0), n);
  cudaDeviceSynchronize();
  Number length = system.length(0);
  for (int step = 0; step < n && length != 0; ++step) {
    multiply<<<row_blocks_of(n), kRows * kWarp>>>(system);
    dot<<<blocks, kBlock>>>(system.direction, system.product, system.curvature_sum(step), n);
    cudaDeviceSynchronize();
    move_on<<<blocks, kBlock>>>(system, divide(length, *system.curvature_sum(step) % kPrime));
    dot<<<blocks, kBlock>>>(system.residual, system.residual, system.length_sum(step + 1), n);
    cudaDeviceSynchronize();
    const Number next = system.length(step + 1);
    turn_direction<<<blocks, kBlock>>>(system, divide(next, length));
    length = next;
  }
}

void launch_drive(const System& system, bool, unsigned long long*) { drive<<<1, 1>>>(system); }
void launch_steps(const System&) {}

#else

template <bool kCount>
__global__ void drive_step(System system, int step, unsigned long long* lost);

// The second half of a step.
template <bool kCount>
__global__ void drive_move(System system, int step, unsigned long long* lost) {
  const int n = system.n;
  const Number factor = divide(system.length(step), *system.curvature_sum(step) % kPrime);
  move_on<<<blocks_of(n), kBlock>>>(system, factor);
  bench::count_if_lost<kCount>(lost);
  dot<<<blocks_of(n), kBlock>>>(system.residual, system.residual, system.length_sum(step + 1), n);
  bench::count_if_lost<kCount>(lost);
  drive_step<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(system, step + 1, lost);
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void drive_step(System system, int step, unsigned long long* lost) {
  const int n = system.n;
  const Number length = system.length(step);
  if (step > 0) {
    turn_direction<<<blocks_of(n), kBlock>>>(system, divide(length, system.length(step - 1)));
    bench::count_if_lost<kCount>(lost);
  }
  if (step == n || length == 0) return;
  multiply<<<row_blocks_of(n), kRows * kWarp>>>(system);
  bench::count_if_lost<kCount>(lost);
  dot<<<blocks_of(n), kBlock>>>(system.direction, system.product, system.curvature_sum(step), n);
  bench::count_if_lost<kCount>(lost);
  drive_move<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(system, step, lost);
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void drive(System system, unsigned long long* lost) {
  dot<<<blocks_of(system.n), kBlock>>>(system.residual, system.residual, system.length_sum(0), system.n);
  bench::count_if_lost<kCount>(lost);
  drive_step<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(system, 0, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_drive(const System& system, bool counts, unsigned long long* lost) {
  (counts ? drive<true> : drive<false>)<<<1, 1>>>(system, lost);
}

// Every thread divides for itself.
__global__ void move_by_sums(System system, int step) {
  if (own_place() >= system.n) return;
  move(system, divide(system.length(step), *system.curvature_sum(step) % kPrime), own_place());
}

__global__ void turn_by_sums(System system, int step) {
  if (own_place() >= system.n) return;
  turn(system, divide(system.length(step + 1), system.length(step)), own_place());
}

void launch_steps(const System& system) {
  const int n = system.n;
  const unsigned blocks = blocks_of(n);
  dot<<<blocks, kBlock>>>(system.residual, system.residual, system.sums + 1, n);
  for (int step = 0; step < n; ++step) {
    multiply<<<row_blocks_of(n), kRows * kWarp>>>(system);
    dot<<<blocks, kBlock>>>(system.direction, system.product, system.sums + 2 * step + 2, n);
    move_by_sums<<<blocks, kBlock>>>(system, step);
    dot<<<blocks, kBlock>>>(system.residual, system.residual, system.sums + 2 * step + 3, n);
    turn_by_sums<<<blocks, kBlock>>>(system, step);
  }
}

#endif

struct Input {
  std::vector<Number> matrix, right;
};

Input random_input(int n, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Input input{std::vector<Number>(static_cast<size_t>(n) * n), std::vector<Number>(static_cast<size_t>(n))};
  for (int row = 0; row < n; ++row) {
    input.right[row] = random.below(kPrime);
    for (int i = 0; i <= row; ++i) {
      input.matrix[row * n + i] = input.matrix[i * n + row] = random.below(kPrime);
    }
  }
  return input;
}

// Elimination; no pivot of these matrices is 0.
std::vector<Number> cpu_solution(Input input, int n) {
  std::vector<Number>&matrix = input.matrix, &right = input.right;
  for (int k = 0; k < n; ++k) {
    const Number inverse = divide(1, matrix[k * n + k]);
    for (int row = 0; row < n; ++row) {
      if (row == k) continue;
      const Number factor = kPrime - times(matrix[row * n + k], inverse);
      for (int i = k; i < n; ++i) {
        matrix[row * n + i] = (matrix[row * n + i] + times(factor, matrix[k * n + i])) % kPrime;
      }
      right[row] = (right[row] + times(factor, right[k])) % kPrime;
    }
  }
  for (int k = 0; k < n; ++k) right[k] = divide(right[k], matrix[k * n + k]);
  return right;
}

class ConjugateGradients final : public bench::StreamProgram {
 public:
  ConjugateGradients(const Input& input, const bench::CommonOptions& options)
      : StreamProgram(options),
        n_(static_cast<int>(input.right.size())),
        expected_(cpu_solution(input, n_)),
        matrix_(input.matrix),
        right_(input.right),
        x_(input.right.size()),
        residual_(input.right.size()),
        direction_(input.right.size()),
        product_(input.right.size()),
        sums_(2 * input.right.size() + 2) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("unknowns", expected_, x_.to_host());
  }

 private:
  void restore() override {
    for (Number* const to : {residual_.data(), direction_.data()}) {
      bench::check(cudaMemcpy(to, right_.data(), right_.bytes(), cudaMemcpyDeviceToDevice),
                   "restoring the right side");
    }
    x_.fill_bytes(0);
    sums_.fill_bytes(0);
  }
  void launch(bool count) override { launch_drive(system(), count, lost()); }
  void launch_flat() override { launch_steps(system()); }
  void describe_sizes(bench::JsonObject& report) const override { report.add("unknowns", n_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = 5LL * n_ + 1 + (bench::kWaits ? 0 : 2LL * n_ + 1),
            .bytes_to_move = static_cast<long long>(matrix_.bytes() + 2 * x_.bytes()),
            .flat_kernels = 5LL * n_ + 1};
  }
  [[nodiscard]] System system() const {
    return {matrix_.data(), x_.data(), residual_.data(), direction_.data(), product_.data(),
            sums_.data(),   n_};
  }

  int n_;
  std::vector<Number> expected_;
  bench::DeviceArray<Number> matrix_;
  bench::DeviceArray<Number> right_;
  bench::DeviceArray<Number> x_;
  bench::DeviceArray<Number> residual_;
  bench::DeviceArray<Number> direction_;
  bench::DeviceArray<Number> product_;
  bench::DeviceArray<Number> sums_;
};

}  // namespace

int main(int argc, char** argv) {
  long long unknowns = 400;
  bench::WaitingOptions options("cg", "conjugate gradients by a thread that waits for products");
  options.integer("unknowns", unknowns, 1, "unknowns of the system");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "unknowns", unknowns, 2048);
  ConjugateGradients program(random_input(static_cast<int>(unknowns), options.common.seed), options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
