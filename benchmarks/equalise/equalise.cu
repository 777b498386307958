// Histogram equalisation of many pictures: a thread for each picture clears its histogram, and launches the
// rest.
//
// The thread calls cudaMemsetAsync() for the picture's 256 counters. Behind it in the NULL stream of its
// block it launches a kernel that counts the brightnesses, one that makes a table of new brightnesses, and
// one that applies the table. Each begins when the one before it is complete. Sequences of different pictures
// are independent.
//
// `--variant flat` launches each kernel once for all pictures.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kLevels = 256;
constexpr int kBlock = 256;

using Pixel = unsigned char;

struct Picture {
  Pixel* pixels;
  unsigned* histogram;  // kLevels counters
  Pixel* table;         // the new brightness for each
  int size;
};

// Pictures one after another, with their histograms and tables.
struct Pictures {
  Picture first;

  [[nodiscard]] __host__ __device__ Picture at(unsigned i) const {
    return {first.pixels + static_cast<size_t>(i) * first.size,
            first.histogram + static_cast<size_t>(i) * kLevels,
            first.table + static_cast<size_t>(i) * kLevels, first.size};
  }
};

__device__ void count_pixel(const Picture& picture) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < picture.size) atomicAdd(&picture.histogram[picture.pixels[i]], 1U);
}

// A thread for each level: the brightness becomes the share of the pixels that are at most as bright.
__device__ void make_table(const Picture& picture) {
  __shared__ unsigned sums[kLevels];
  sums[threadIdx.x] = picture.histogram[threadIdx.x];
  __syncthreads();
  for (unsigned distance = 1; distance < kLevels; distance *= 2) {
    const unsigned before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  const unsigned long long share = static_cast<unsigned long long>(sums[threadIdx.x]) * (kLevels - 1);
  picture.table[threadIdx.x] = static_cast<Pixel>(share / static_cast<unsigned>(picture.size));
}

__device__ void apply_table(const Picture& picture) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < picture.size) picture.pixels[i] = picture.table[picture.pixels[i]];
}

__global__ void count(Picture picture) { count_pixel(picture); }
__global__ void __launch_bounds__(kLevels) tabulate(Picture picture) { make_table(picture); }
__global__ void apply(Picture picture) { apply_table(picture); }

template <bool kCount>
__global__ void equalise(Pictures pictures, unsigned long long* lost) {
  const Picture picture = pictures.at(blockIdx.x);
  const unsigned blocks = bench::blocks_for(picture.size, kBlock);
  const cudaError_t error = cudaMemsetAsync(picture.histogram, 0, kLevels * sizeof(unsigned), nullptr);
  if (kCount && error != cudaSuccess) atomicAdd(lost, 1ULL);
  count<<<blocks, kBlock>>>(picture);
  bench::count_if_lost<kCount>(lost);
  tabulate<<<1, kLevels>>>(picture);
  bench::count_if_lost<kCount>(lost);
  apply<<<blocks, kBlock>>>(picture);
  bench::count_if_lost<kCount>(lost);
}

// A row of blocks for each picture.
__global__ void count_flat(Pictures pictures) { count_pixel(pictures.at(blockIdx.y)); }
__global__ void __launch_bounds__(kLevels) tabulate_flat(Pictures pictures) {
  make_table(pictures.at(blockIdx.y));
}
__global__ void apply_flat(Pictures pictures) { apply_table(pictures.at(blockIdx.y)); }

namespace {

struct Sizes {
  long long pictures = 256;
  long long pixels = 4096;
};

// Dark pictures: the smallest of three random numbers.
std::vector<Pixel> random_pictures(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Pixel> pixels(static_cast<size_t>(sizes.pictures * sizes.pixels));
  for (Pixel& pixel : pixels)
    pixel =
        static_cast<Pixel>(std::min({random.below(kLevels), random.below(kLevels), random.below(kLevels)}));
  return pixels;
}

std::vector<Pixel> cpu_equalised(std::vector<Pixel> pixels, const Sizes& sizes) {
  const auto size = static_cast<size_t>(sizes.pixels);
  for (size_t begin = 0; begin < pixels.size(); begin += size) {
    std::array<unsigned long long, kLevels> sums{};
    for (size_t i = begin; i < begin + size; ++i) ++sums[pixels[i]];
    for (int level = 1; level < kLevels; ++level) sums[level] += sums[level - 1];
    for (size_t i = begin; i < begin + size; ++i)
      pixels[i] = static_cast<Pixel>(sums[pixels[i]] * (kLevels - 1) / size);
  }
  return pixels;
}

class Equalise final : public bench::ArrayProgram<Pixel> {
 public:
  Equalise(const Sizes& sizes, const std::vector<Pixel>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "pixels", input, cpu_equalised(input, sizes)),
        sizes_(sizes),
        histograms_(static_cast<size_t>(sizes.pictures * kLevels)),
        tables_(static_cast<size_t>(sizes.pictures * kLevels)) {}

 private:
  // The counters of the run before must not look cleared.
  void restore() override {
    ArrayProgram::restore();
    histograms_.fill_bytes(0x55);
  }

  [[nodiscard]] Pictures pictures() const {
    return {{data(), histograms_.data(), tables_.data(), static_cast<int>(sizes_.pixels)}};
  }

  void launch(bool counted) override {
    (counted ? equalise<true> : equalise<false>)<<<static_cast<unsigned>(sizes_.pictures), 1>>>(pictures(),
                                                                                                lost());
  }

  void launch_flat() override {
    const auto rows = static_cast<unsigned>(sizes_.pictures);
    const dim3 grid(bench::blocks_for(sizes_.pixels, kBlock), rows);
    bench::check(cudaMemsetAsync(histograms_.data(), 0, histograms_.bytes()), "clearing the histograms");
    count_flat<<<grid, kBlock>>>(pictures());
    tabulate_flat<<<dim3(1, rows), kLevels>>>(pictures());
    apply_flat<<<grid, kBlock>>>(pictures());
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("pictures", sizes_.pictures).add("pixels", sizes_.pixels);
    report.add("child_fills", sizes_.pictures);
  }
  // Pixels are read to be counted, and again to be replaced.
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = 3 * sizes_.pictures,
            .bytes_to_move = 3 * sizes_.pictures * sizes_.pixels,
            .flat_kernels = 3,
            .flat_fills = 1};
  }

  Sizes sizes_;
  bench::DeviceArray<unsigned> histograms_;
  bench::DeviceArray<Pixel> tables_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("equalise",
                         "histogram equalisation, with histograms that kernels clear by cudaMemsetAsync");
  options.integer("pictures", sizes.pictures, 1, "pictures");
  options.integer("pixels", sizes.pixels, 1, "pixels of each");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("equalise", "pictures", sizes.pictures, 65535);
  bench::require_at_most("equalise", "pixels", sizes.pixels, 1 << 26);
  bench::require_device("equalise");
  Equalise program(sizes, random_pictures(sizes, common.seed), common);
  return bench::run_benchmark("equalise", common, program);
}
