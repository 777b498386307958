// Haar wavelet transform of many signals, by a kernel that launches itself in blocks of half the size.
//
// A block replaces the values of a signal by the averages of neighbours, and behind them their differences.
// Then one of its threads launches the kernel for the averages: half the values, so half the threads.
// Averages are rounded down, and the differences tell how, so the transform loses nothing and its result is
// exact.
//
// `--variant flat` does all levels of a signal in one block.
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kMostThreads = 1024;

// One level, by a block with a thread for each pair of values.
__device__ void transform_level(int* signal, int pairs) {
  const int i = static_cast<int>(threadIdx.x);
  int first = 0;
  int second = 0;
  if (i < pairs) {
    first = signal[2 * i];
    second = signal[2 * i + 1];
  }
  __syncthreads();
  if (i < pairs) {
    signal[i] = (first + second) >> 1;
    signal[pairs + i] = first - second;
  }
  __syncthreads();
}

// The host launches a block for each signal, a block itself only one.
template <bool kCount>
__global__ void __launch_bounds__(kMostThreads) transform(int* signals, unsigned long long* lost) {
  int* const signal = signals + static_cast<size_t>(2 * blockDim.x) * blockIdx.x;
  transform_level(signal, static_cast<int>(blockDim.x));
  if (threadIdx.x == 0 && blockDim.x > 1) {
    transform<kCount><<<1, blockDim.x / 2>>>(signal, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void __launch_bounds__(kMostThreads) transform_flat(int* signals) {
  int* const signal = signals + static_cast<size_t>(2 * blockDim.x) * blockIdx.x;
  for (int pairs = static_cast<int>(blockDim.x); pairs > 0; pairs /= 2) transform_level(signal, pairs);
}

namespace {

struct Sizes {
  long long signals = 256;
  long long log2_length = 10;
};

std::vector<int> random_signals(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> values(static_cast<size_t>(sizes.signals) << sizes.log2_length);
  for (int& value : values) value = static_cast<int>(random.below(1 << 16));
  return values;
}

std::vector<int> cpu_transform(std::vector<int> values, const Sizes& sizes) {
  const size_t length = size_t{1} << sizes.log2_length;
  for (size_t begin = 0; begin < values.size(); begin += length) {
    int* const signal = values.data() + begin;
    for (size_t pairs = length / 2; pairs > 0; pairs /= 2) {
      const std::vector<int> before(signal, signal + 2 * pairs);
      for (size_t i = 0; i < pairs; ++i) {
        signal[i] = (before[2 * i] + before[2 * i + 1]) >> 1;
        signal[pairs + i] = before[2 * i] - before[2 * i + 1];
      }
    }
  }
  return values;
}

class Haar final : public bench::ArrayProgram<int> {
 public:
  Haar(const Sizes& sizes, const bench::CommonOptions& options)
      : Haar(sizes, options, random_signals(sizes, options.seed)) {}

 private:
  Haar(const Sizes& sizes, const bench::CommonOptions& options, const std::vector<int>& input)
      : ArrayProgram(options, "coefficients", input, cpu_transform(input, sizes)), sizes_(sizes) {}

  void launch(bool count) override {
    (count ? transform<true> : transform<false>)<<<blocks(), threads()>>>(data(), lost());
  }
  void launch_flat() override { transform_flat<<<blocks(), threads()>>>(data()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("signals", sizes_.signals).add("log2_length", sizes_.log2_length);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = sizes_.signals * (sizes_.log2_length - 1),
            .bytes_to_move = (8 * sizes_.signals) << sizes_.log2_length,
            .flat_kernels = 1};
  }

  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(sizes_.signals); }
  [[nodiscard]] unsigned threads() const { return 1U << (sizes_.log2_length - 1); }

  Sizes sizes_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("haar",
                         "Haar wavelet transform, with a launch of half as many threads for each level");
  options.integer("signals", sizes.signals, 1, "signals, which are independent of each other");
  options.integer("log2-length", sizes.log2_length, 1, "log2 of the values of a signal");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("haar", "signals", sizes.signals, 1 << 20);
  bench::require_at_most("haar", "log2-length", sizes.log2_length, 11);
  bench::require_device("haar");
  Haar program(sizes, common);
  return bench::run_benchmark("haar", common, program);
}
