// The sandpile model: a step is a fork of one child for each row, and a tail launch joins them.
//
// Cells that hold four grains or more lose four, and each of their neighbours gains one, all at the same
// time. Grains fall off the border. Each thread of a block launches a child for a row, which reads one array
// and writes the other. One thread launches the block's own kernel for the next step into the tail-launch
// stream, with the arrays exchanged.
//
// `--variant flat` launches a kernel for each step from the host.
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kWidth = 64;
constexpr int kMostRows = 1024;

__host__ __device__ inline int grains_after(const int* now, int rows, int row, int column) {
  const int* const cell = now + row * kWidth + column;
  int grains = *cell >= 4 ? *cell - 4 : *cell;
  grains += column > 0 && cell[-1] >= 4 ? 1 : 0;
  grains += column + 1 < kWidth && cell[1] >= 4 ? 1 : 0;
  grains += row > 0 && cell[-kWidth] >= 4 ? 1 : 0;
  grains += row + 1 < rows && cell[kWidth] >= 4 ? 1 : 0;
  return grains;
}

__global__ void __launch_bounds__(kWidth) topple(const int* now, int* next, int rows, int row) {
  const int column = static_cast<int>(threadIdx.x);
  next[row * kWidth + column] = grains_after(now, rows, row, column);
}

template <bool kCount>
__global__ void __launch_bounds__(kMostRows) step(int* now, int* next, int steps, unsigned long long* lost) {
  topple<<<1, kWidth>>>(now, next, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x));
  bench::count_if_lost<kCount>(lost);
  if (threadIdx.x == 0 && steps > 1) {
    step<kCount><<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(next, now, steps - 1, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

// A block for each row.
__global__ void __launch_bounds__(kWidth) step_flat(const int* now, int* next) {
  const int row = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(threadIdx.x);
  next[row * kWidth + column] = grains_after(now, static_cast<int>(gridDim.x), row, column);
}

namespace {

struct Sizes {
  long long rows = 1000;
  long long steps = 20;
};

std::vector<int> random_pile(long long rows, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> grains(static_cast<size_t>(rows) * kWidth);
  for (int& cell : grains) cell = static_cast<int>(random.below(8));
  return grains;
}

std::vector<int> cpu_pile(std::vector<int> now, const Sizes& sizes) {
  const int rows = static_cast<int>(sizes.rows);
  std::vector<int> next(now.size());
  for (long long i = 0; i < sizes.steps; ++i) {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < kWidth; ++column)
        next[static_cast<size_t>(row) * kWidth + column] = grains_after(now.data(), rows, row, column);
    }
    now.swap(next);
  }
  return now;
}

class Sandpile final : public bench::ArrayProgram<int> {
 public:
  Sandpile(const Sizes& sizes, const std::vector<int>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "cells", input, cpu_pile(input, sizes)), sizes_(sizes), next_(input.size()) {}

  // After an odd number of steps the grains are in the other array.
  [[nodiscard]] std::string verify() override {
    return sizes_.steps % 2 == 0 ? ArrayProgram::verify()
                                 : bench::differences(what(), expected(), next_.to_host());
  }

 private:
  void launch(bool count) override {
    (count ? step<true> : step<false>)<<<1, static_cast<unsigned>(sizes_.rows)>>>(
        data(), next_.data(), static_cast<int>(sizes_.steps), lost());
  }

  void launch_flat() override {
    for (long long i = 0; i < sizes_.steps; ++i) {
      int* const now = i % 2 == 0 ? data() : next_.data();
      int* const next = i % 2 == 0 ? next_.data() : data();
      step_flat<<<static_cast<unsigned>(sizes_.rows), kWidth>>>(now, next);
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("rows", sizes_.rows).add("width", kWidth).add("steps", sizes_.steps);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = sizes_.steps * (sizes_.rows + 1) - 1,
            .bytes_to_move = 8 * kWidth * sizes_.rows,
            .flat_kernels = sizes_.steps};
  }

  Sizes sizes_;
  bench::DeviceArray<int> next_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("sandpile",
                         "the sandpile model, with a child for each row and a tail launch behind them");
  options.integer("rows", sizes.rows, 1, "rows of 64 cells");
  options.integer("steps", sizes.steps, 1, "steps");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("sandpile", "rows", sizes.rows, kMostRows);
  bench::require_at_most("sandpile", "steps", sizes.steps, 1 << 16);
  bench::require_device("sandpile");
  Sandpile program(sizes, random_pile(sizes.rows, common.seed), common);
  return bench::run_benchmark("sandpile", common, program);
}
