// Heat in a plate: one thread launches the kernels of all time steps, one behind the other.
//
// A step reads one array and writes the other, and the next step goes the other way. All launches are in the
// NULL stream of the thread's block. So each kernel runs behind the one whose result it reads. Temperatures
// are whole numbers, thousandths of a degree for example, and a step rounds down, so the result is exact.
//
// `--variant flat` launches the steps from the host.
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlockWidth = 32;
constexpr int kBlockHeight = 8;

struct Plate {
  int width;
  int height;

  [[nodiscard]] __host__ __device__ dim3 grid() const {
    return {bench::blocks_for(width, kBlockWidth), bench::blocks_for(height, kBlockHeight)};
  }
};

// The border keeps its temperature.
__host__ __device__ inline int temperature_after(const int* now, const Plate& plate, int x, int y) {
  const size_t i = static_cast<size_t>(y) * plate.width + x;
  if (x == 0 || y == 0 || x == plate.width - 1 || y == plate.height - 1) return now[i];
  const int neighbours = now[i - 1] + now[i + 1] + now[i - plate.width] + now[i + plate.width];
  return (4 * now[i] + neighbours) >> 3;
}

__global__ void step(const int* now, int* next, Plate plate) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < plate.width && y < plate.height)
    next[static_cast<size_t>(y) * plate.width + x] = temperature_after(now, plate, x, y);
}

template <bool kCount>
__global__ void drive(int* now, int* next, Plate plate, int pairs_of_steps, unsigned long long* lost) {
  const dim3 block(kBlockWidth, kBlockHeight);
  for (int i = 0; i < pairs_of_steps; ++i) {
    step<<<plate.grid(), block>>>(now, next, plate);
    bench::count_if_lost<kCount>(lost);
    step<<<plate.grid(), block>>>(next, now, plate);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

struct Sizes {
  long long width = 128;
  long long height = 128;
  long long steps = 200;
};

std::vector<int> random_plate(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> values(static_cast<size_t>(sizes.width * sizes.height));
  for (int& value : values) value = static_cast<int>(random.below(100000));
  return values;
}

std::vector<int> cpu_heat(std::vector<int> now, const Sizes& sizes) {
  const Plate plate = {static_cast<int>(sizes.width), static_cast<int>(sizes.height)};
  std::vector<int> next(now.size());
  for (long long i = 0; i < sizes.steps; ++i) {
    for (int y = 0; y < plate.height; ++y) {
      for (int x = 0; x < plate.width; ++x)
        next[static_cast<size_t>(y) * plate.width + x] = temperature_after(now.data(), plate, x, y);
    }
    now.swap(next);
  }
  return now;
}

class Heat final : public bench::ArrayProgram<int> {
 public:
  Heat(const Sizes& sizes, const std::vector<int>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "temperatures", input, cpu_heat(input, sizes)),
        plate_{static_cast<int>(sizes.width), static_cast<int>(sizes.height)},
        steps_(static_cast<int>(sizes.steps)),
        next_(input.size()) {}

 private:
  void launch(bool count) override {
    (count ? drive<true> : drive<false>)<<<1, 1>>>(data(), next_.data(), plate_, steps_ / 2, lost());
  }

  void launch_flat() override {
    const dim3 block(kBlockWidth, kBlockHeight);
    for (int i = 0; i < steps_; ++i) {
      int* const now = i % 2 == 0 ? data() : next_.data();
      int* const next = i % 2 == 0 ? next_.data() : data();
      step<<<plate_.grid(), block>>>(now, next, plate_);
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("width", plate_.width).add("height", plate_.height).add("steps", steps_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = steps_,
            .bytes_to_move = 8LL * plate_.width * plate_.height,
            .flat_kernels = steps_};
  }

  Plate plate_;
  int steps_;
  bench::DeviceArray<int> next_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("heat", "heat in a plate, with all time steps launched by one thread");
  options.integer("width", sizes.width, 2, "points in a row");
  options.integer("height", sizes.height, 2, "rows");
  options.integer("steps", sizes.steps, 2, "time steps; an odd number is rounded up");
  common.add_to(options);
  options.parse(argc, argv);
  sizes.steps += sizes.steps % 2;
  bench::require_at_most("heat", "width", sizes.width, 1 << 15);
  bench::require_at_most("heat", "height", sizes.height, 1 << 15);
  bench::require_at_most("heat", "steps", sizes.steps, 1 << 20);
  bench::require_device("heat");
  Heat program(sizes, random_plate(sizes, common.seed), common);
  return bench::run_benchmark("heat", common, program);
}
