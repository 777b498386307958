// Conjugate gradients on the device: each iteration asks for the device's size and for errors between its
// launches.
//
// A kernel of one thread asks which device it runs on and how many multiprocessors that has. It launches the
// three kernels of an iteration in grids that fill the device, and looks at the last error after each. If
// there was none, it launches itself for the next iteration into the tail-launch stream. An error ends the
// iterations.
//
// The equations are those of an implicit time step of heat in a plate: each point's value, less a part of the
// differences to its four neighbours. They are solved to all digits in some tens of iterations.
//
// `--variant flat` launches the iterations from the host.
#include <cmath>
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 256;
constexpr int kBlocksPerMultiprocessor = 4;
constexpr double kExchange = 0.5;  // with each neighbour

// Vectors of side * side numbers. Products have a number for each iteration, 0 before a run.
struct System {
  double* solution;
  double* residual;
  double* direction;
  double* image;  // of the direction
  double* residual_products;
  double* image_products;
  int side;

  [[nodiscard]] __host__ __device__ int size() const { return side * side; }
};

// The row of the matrix times a vector.
__host__ __device__ inline double row_product(const double* vector, int side, int i) {
  const int x = i % side;
  const int y = i / side;
  double sum = (1 + 4 * kExchange) * vector[i];
  if (x > 0) sum -= kExchange * vector[i - 1];
  if (x + 1 < side) sum -= kExchange * vector[i + 1];
  if (y > 0) sum -= kExchange * vector[i - side];
  if (y + 1 < side) sum -= kExchange * vector[i + side];
  return sum;
}

// Adds the numbers of all threads of the warp to `sum`.
__device__ void add_to(double* sum, double value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}

__device__ int first_element() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int stride() { return static_cast<int>(gridDim.x * blockDim.x); }

__global__ void multiply(System system, int iteration) {
  double product = 0;
  for (int i = first_element(); i < system.size(); i += stride()) {
    const double value = row_product(system.direction, system.side, i);
    system.image[i] = value;
    product += value * system.direction[i];
  }
  add_to(&system.image_products[iteration], product);
}

__global__ void go_on(System system, int iteration) {
  const double distance = system.residual_products[iteration] / system.image_products[iteration];
  double product = 0;
  for (int i = first_element(); i < system.size(); i += stride()) {
    system.solution[i] += distance * system.direction[i];
    const double rest = system.residual[i] - distance * system.image[i];
    system.residual[i] = rest;
    product += rest * rest;
  }
  add_to(&system.residual_products[iteration + 1], product);
}

__global__ void turn(System system, int iteration) {
  const double part = system.residual_products[iteration + 1] / system.residual_products[iteration];
  for (int i = first_element(); i < system.size(); i += stride())
    system.direction[i] = system.residual[i] + part * system.direction[i];
}

// Blocks for all elements, but not more than the device runs at a time.
__device__ unsigned blocks_on_this_device(int elements) {
  int device = 0;
  int multiprocessors = 1;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return 1;
  return min(bench::blocks_for(elements, kBlock),
             static_cast<unsigned>(multiprocessors * kBlocksPerMultiprocessor));
}

// Whether a launch was refused. The counting kernel then notes it and forgets the error.
template <bool kCount>
__device__ bool has_failed(unsigned long long* lost) {
  if (cudaPeekAtLastError() == cudaSuccess) return false;
  bench::count_if_lost<kCount>(lost);
  return true;
}

template <bool kCount>
__global__ void iterate(System system, int iteration, int iterations, unsigned long long* lost) {
  const unsigned blocks = blocks_on_this_device(system.size());
  multiply<<<blocks, kBlock>>>(system, iteration);
  if (has_failed<kCount>(lost)) return;
  go_on<<<blocks, kBlock>>>(system, iteration);
  if (has_failed<kCount>(lost)) return;
  turn<<<blocks, kBlock>>>(system, iteration);
  if (has_failed<kCount>(lost)) return;
  if (iteration + 1 < iterations) {
    iterate<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(system, iteration + 1, iterations, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

std::vector<double> random_solution(long long side, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<double> values(static_cast<size_t>(side * side));
  for (double& value : values) value = 2 * random.uniform() - 1;
  return values;
}

class ConjugateGradients final : public bench::StreamProgram {
 public:
  ConjugateGradients(const std::vector<double>& expected, int side, int iterations,
                     const bench::CommonOptions& options)
      : StreamProgram(options),
        side_(side),
        iterations_(iterations),
        expected_(expected),
        right_side_(right_side_for(expected, side)),
        solution_(expected.size()),
        residual_(expected.size()),
        direction_(expected.size()),
        image_(expected.size()),
        residual_products_(static_cast<size_t>(iterations) + 1),
        image_products_(static_cast<size_t>(iterations) + 1) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences_beyond("unknowns", expected_, solution_.to_host(), 1e-7, 1e-7);
  }

 private:
  static std::vector<double> right_side_for(const std::vector<double>& solution, int side) {
    std::vector<double> values(solution.size());
    for (int i = 0; i < side * side; ++i) values[i] = row_product(solution.data(), side, i);
    return values;
  }

  // From the solution 0 on, whose residual is the right side.
  void restore() override {
    double product = 0;
    for (const double value : right_side_) product += value * value;
    const size_t bytes = solution_.bytes();
    solution_.fill_bytes(0);
    residual_products_.fill_bytes(0);
    image_products_.fill_bytes(0);
    for (double* const to : {residual_.data(), direction_.data()})
      bench::check(cudaMemcpy(to, right_side_.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");
    bench::check(cudaMemcpy(residual_products_.data(), &product, sizeof product, cudaMemcpyHostToDevice),
                 "copy to the device");
  }

  [[nodiscard]] System system() const {
    return {solution_.data(),
            residual_.data(),
            direction_.data(),
            image_.data(),
            residual_products_.data(),
            image_products_.data(),
            side_};
  }

  void launch(bool count) override {
    (count ? iterate<true> : iterate<false>)<<<1, 1>>>(system(), 0, iterations_, lost());
  }

  void launch_flat() override {
    const unsigned blocks = bench::blocks_for(system().size(), kBlock);
    for (int iteration = 0; iteration < iterations_; ++iteration) {
      multiply<<<blocks, kBlock>>>(system(), iteration);
      go_on<<<blocks, kBlock>>>(system(), iteration);
      turn<<<blocks, kBlock>>>(system(), iteration);
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("side", side_).add("iterations", iterations_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = 4LL * iterations_ - 1,
            .bytes_to_move = 16LL * side_ * side_,
            .flat_kernels = 3LL * iterations_};
  }

  int side_;
  int iterations_;
  std::vector<double> expected_;
  std::vector<double> right_side_;
  bench::DeviceArray<double> solution_;
  bench::DeviceArray<double> residual_;
  bench::DeviceArray<double> direction_;
  bench::DeviceArray<double> image_;
  bench::DeviceArray<double> residual_products_;
  bench::DeviceArray<double> image_products_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long side = 128;
  long long iterations = 25;
  bench::Options options("cg",
                         "conjugate gradients, with questions to the device runtime between the launches");
  options.integer("side", side, 2, "points along each side of the plate");
  options.integer("iterations", iterations, 1, "iterations");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("cg", "side", side, 1 << 14);
  bench::require_at_most("cg", "iterations", iterations, 1 << 16);
  bench::require_device("cg");
  ConjugateGradients program(random_solution(side, common.seed), static_cast<int>(side),
                             static_cast<int>(iterations), common);
  return bench::run_benchmark("cg", common, program);
}
