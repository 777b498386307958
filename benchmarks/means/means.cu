// Vectors less their means: a child halves a vector by tail launches, and the one behind it needs the whole
// sum.
//
// A block of one thread for each vector launches two kernels into its NULL stream. The first one adds the
// second half of the vector to the first half, and launches itself into the tail-launch stream for what is
// left, in fewer and in the end in smaller blocks. The second one takes the mean off. It runs behind the
// first one with all tail launches that follow from it, so it finds the sum of all values.
//
// `--variant flat` has a block for each vector.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kBlock = 256;

// Vectors one after another, and as much memory for their halves.
struct Vectors {
  int* values;
  int* halves;
  int length;

  [[nodiscard]] __device__ int* values_of(unsigned vector) const {
    return values + static_cast<size_t>(vector) * length;
  }
  [[nodiscard]] __device__ int* halves_of(unsigned vector) const {
    return halves + static_cast<size_t>(vector) * length;
  }
};

__host__ __device__ inline int half_of(int length) { return (length + 1) / 2; }

// The value whose mean is taken off, rounded to the next whole number towards 0.
__device__ int centred(int value, int sum, int length) { return value - sum / length; }

// From the vector to its halves at first, and then from the halves to themselves.
template <bool kCount>
__global__ void __launch_bounds__(kBlock)
    halve(const int* from, int* to, int length, unsigned long long* lost) {
  const int half = half_of(length);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < half) to[i] = from[i] + (i + half < length ? from[i + half] : 0);
  if (i != 0 || half == 1) return;
  const int threads = min(half_of(half), kBlock);
  halve<kCount>
      <<<bench::blocks_for(half_of(half), threads), threads, 0, cudaStreamTailLaunch>>>(to, to, half, lost);
  bench::count_if_lost<kCount>(lost);
}

__global__ void centre(int* values, const int* sum, int length) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < length) values[i] = centred(values[i], *sum, length);
}

template <bool kCount>
__global__ void centre_vector(Vectors vectors, unsigned long long* lost) {
  int* const values = vectors.values_of(blockIdx.x);
  int* const halves = vectors.halves_of(blockIdx.x);
  const int half = half_of(vectors.length);
  const int threads = min(half, kBlock);
  halve<kCount><<<bench::blocks_for(half, threads), threads>>>(values, halves, vectors.length, lost);
  bench::count_if_lost<kCount>(lost);
  centre<<<bench::blocks_for(vectors.length, kBlock), kBlock>>>(values, halves, vectors.length);
  bench::count_if_lost<kCount>(lost);
}

__global__ void __launch_bounds__(kBlock) centre_flat(Vectors vectors) {
  __shared__ int sum;
  int* const values = vectors.values_of(blockIdx.x);
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  int own = 0;
  for (int i = static_cast<int>(threadIdx.x); i < vectors.length; i += kBlock) own += values[i];
  atomicAdd(&sum, own);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < vectors.length; i += kBlock)
    values[i] = centred(values[i], sum, vectors.length);
}

namespace {

struct Sizes {
  long long vectors = 64;
  long long length = 10000;
};

std::vector<int> cpu_centred(std::vector<int> values, const Sizes& sizes) {
  const auto length = static_cast<size_t>(sizes.length);
  for (size_t begin = 0; begin < values.size(); begin += length) {
    int* const vector = values.data() + begin;
    const long long sum = std::accumulate(vector, vector + length, 0LL);
    for (size_t i = 0; i < length; ++i) vector[i] -= static_cast<int>(sum / sizes.length);
  }
  return values;
}

class Means final : public bench::ArrayProgram<int> {
 public:
  Means(const Sizes& sizes, const std::vector<int>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "values", input, cpu_centred(input, sizes)),
        sizes_(sizes),
        halves_(input.size()) {}

 private:
  [[nodiscard]] Vectors vectors() const { return {data(), halves_.data(), static_cast<int>(sizes_.length)}; }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(sizes_.vectors); }

  void launch(bool count) override {
    (count ? centre_vector<true> : centre_vector<false>)<<<blocks(), 1>>>(vectors(), lost());
  }
  void launch_flat() override { centre_flat<<<blocks(), kBlock>>>(vectors()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("vectors", sizes_.vectors).add("length", sizes_.length);
  }
  // A launch for each half, and the one that takes the mean off.
  [[nodiscard]] bench::RunFacts facts() const override {
    long long launches = 2;
    for (int half = half_of(static_cast<int>(sizes_.length)); half > 1; half = half_of(half)) ++launches;
    return {.child_launches = sizes_.vectors * launches,
            .bytes_to_move = 12 * sizes_.vectors * sizes_.length,
            .flat_kernels = 1};
  }

  Sizes sizes_;
  bench::DeviceArray<int> halves_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("means",
                         "vectors less their means, with sums by tail launches of half as many threads");
  options.integer("vectors", sizes.vectors, 1, "vectors");
  options.integer("length", sizes.length, 1, "values of each");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("means", "vectors", sizes.vectors, 65535);
  bench::require_at_most("means", "length", sizes.length, 1 << 21);
  bench::require_device("means");
  Means program(sizes, bench::random_values_below(1000, sizes.vectors * sizes.length, common.seed), common);
  return bench::run_benchmark("means", common, program);
}
