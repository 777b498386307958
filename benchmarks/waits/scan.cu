// Prefix sums of many arrays. A block adds up the tiles of its array, launches a block for the prefix sums of
// the tiles' sums, waits for it, and adds the offsets to its tiles.
//
// Arrays differ in length, so some blocks have less than others to wait for. One tail launch adds the offsets
// of all blocks of a grid. `--variant flat` has a grid for each depth, on the way down and on the way back.
#include <algorithm>
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kBlock = 64;
constexpr int kTile = 8;

__host__ __device__ inline int tiles_of(int n) { return (n + kTile - 1) / kTile; }

// The sums of an array's tiles follow it.
struct Array {
  int begin, length;

  __host__ __device__ Array sums() const { return {begin + length, tiles_of(length)}; }
};

// The block's threads take tiles in turn.
__device__ void add_up_tiles(unsigned* values, const Array& array) {
  const Array sums = array.sums();
  for (int tile = static_cast<int>(threadIdx.x); tile < sums.length; tile += kBlock) {
    unsigned sum = 0;
    for (int i = tile * kTile; i < min(array.length, (tile + 1) * kTile); ++i) {
      values[array.begin + i] = sum += values[array.begin + i];
    }
    values[sums.begin + tile] = sum;
  }
}

__device__ void add_offsets(unsigned* values, const Array& array) {
  const Array sums = array.sums();
  for (int i = kTile + static_cast<int>(threadIdx.x); i < array.length; i += kBlock) {
    values[array.begin + i] += values[sums.begin + i / kTile - 1];
  }
}

#ifdef BENCH_WAITS

__device__ void scan_array(unsigned* values, const Array& array);

__global__ void scan_one(unsigned* values, Array array) { scan_array(values, array); }

__device__ __forceinline__ void scan_array(unsigned* values, const Array& array) {
  add_up_tiles(values, array);
  __syncthreads();
  if (array.sums().length == 1) return;
  if (threadIdx.x == 0) {
    scan_one<<<1, kBlock>>>(values, array.sums());
    cudaDeviceSynchronize();
  }
  __syncthreads();
  add_offsets(values, array);
}

// A block for each array.
__global__ void scan_all(unsigned* values, const Array* arrays) { scan_array(values, arrays[blockIdx.x]); }

void launch_scan(unsigned* values, const Array* arrays, int count, bool, unsigned long long*) {
  scan_all<<<count, kBlock>>>(values, arrays);
}
void launch_depths(unsigned*, const Array*, int, int) {}

#else

__global__ void finish_one(unsigned* values, Array array) { add_offsets(values, array); }

template <bool kCount>
__global__ void scan_one(unsigned* values, Array array, unsigned long long* lost) {
  add_up_tiles(values, array);
  __syncthreads();
  if (threadIdx.x != 0 || array.sums().length == 1) return;
  scan_one<kCount><<<1, kBlock, 0, cudaStreamFireAndForget>>>(values, array.sums(), lost);
  bench::count_if_lost<kCount>(lost);
  finish_one<<<1, kBlock, 0, cudaStreamTailLaunch>>>(values, array);
  bench::count_if_lost<kCount>(lost);
}

__global__ void finish_all(unsigned* values, const Array* arrays) { add_offsets(values, arrays[blockIdx.x]); }

// A block for each array.
template <bool kCount>
__global__ void scan_all(unsigned* values, const Array* arrays, unsigned long long* lost) {
  const Array array = arrays[blockIdx.x];
  add_up_tiles(values, array);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    finish_all<<<gridDim.x, kBlock, 0, cudaStreamTailLaunch>>>(values, arrays);
    bench::count_if_lost<kCount>(lost);
  }
  if (array.sums().length == 1) return;
  scan_one<kCount><<<1, kBlock, 0, cudaStreamFireAndForget>>>(values, array.sums(), lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_scan(unsigned* values, const Array* arrays, int count, bool counts, unsigned long long* lost) {
  (counts ? scan_all<true> : scan_all<false>)<<<count, kBlock>>>(values, arrays, lost);
}

// The sums of sums at a depth; of length 0 where there is no need for them.
__device__ Array array_at(Array array, int depth) {
  for (; depth > 0; --depth) array = tiles_of(array.length) <= 1 ? Array{array.begin, 0} : array.sums();
  return array;
}

__global__ void go_down(unsigned* values, const Array* arrays, int depth) {
  add_up_tiles(values, array_at(arrays[blockIdx.x], depth));
}
__global__ void go_up(unsigned* values, const Array* arrays, int depth) {
  add_offsets(values, array_at(arrays[blockIdx.x], depth));
}

void launch_depths(unsigned* values, const Array* arrays, int count, int depths) {
  for (int depth = 0; depth < depths; ++depth) go_down<<<count, kBlock>>>(values, arrays, depth);
  for (int depth = depths - 1; depth-- > 0;) go_up<<<count, kBlock>>>(values, arrays, depth);
}

#endif

// Arrays of up to `longest` values.
std::vector<Array> random_arrays(int count, int longest, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Array> arrays;
  int end = 0;
  for (int i = 0; i < count; ++i) {
    arrays.push_back({end, 1 + static_cast<int>(random.below(static_cast<uint32_t>(longest)))});
    // The last sums are of one tile.
    Array last = arrays.back();
    do last = last.sums();
    while (last.length > 1);
    end = last.begin + 1;
  }
  return arrays;
}

class Scan final : public bench::StreamProgram {
 public:
  Scan(const std::vector<Array>& arrays, const bench::CommonOptions& options)
      : StreamProgram(options),
        arrays_(arrays),
        input_(bench::random_values_below(1U << 31, space(arrays), options.seed)),
        device_arrays_(arrays),
        device_input_(input_),
        values_(input_.size()) {}

  [[nodiscard]] std::string verify() override {
    const std::vector<unsigned> all = values_.to_host();
    std::vector<unsigned> expected, found;
    for (const Array& array : arrays_) {
      unsigned sum = 0;
      for (int i = array.begin; i < array.begin + array.length; ++i) {
        expected.push_back(sum += static_cast<unsigned>(input_[i]));
        found.push_back(all[i]);
      }
    }
    return bench::differences("prefix sums", expected, found);
  }

 private:
  void restore() override {
    bench::check(cudaMemcpy(values_.data(), device_input_.data(), values_.bytes(), cudaMemcpyDeviceToDevice),
                 "restoring the input");
  }
  void launch(bool count) override {
    launch_scan(values_.data(), device_arrays_.data(), static_cast<int>(arrays_.size()), count, lost());
  }
  void launch_flat() override {
    launch_depths(values_.data(), device_arrays_.data(), static_cast<int>(arrays_.size()), depths());
  }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("arrays", static_cast<int>(arrays_.size())).add("depths", depths());
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    long long launches = bench::kWaits ? 0 : 1, bytes = 0;
    for (const Array& array : arrays_) {
      bytes += 8LL * array.length;
      for (Array at = array; at.sums().length > 1; at = at.sums()) {
        // In the tail form every block but the first grid's has a tail launch of its own.
        launches += bench::kWaits || at.begin == array.begin ? 1 : 2;
      }
    }
    return {.child_launches = launches, .bytes_to_move = bytes, .flat_kernels = 2 * depths() - 1};
  }

  // Arrays on the way down from the longest array to a single tile.
  [[nodiscard]] int depths() const {
    int most = 0;
    for (const Array& array : arrays_) {
      int depth = 1;
      for (Array at = array; at.sums().length > 1; at = at.sums()) ++depth;
      most = std::max(most, depth);
    }
    return most;
  }
  static long long space(const std::vector<Array>& arrays) {
    long long longest = 2;
    for (int length = arrays.back().length; length > 1; length = tiles_of(length)) longest += length;
    return arrays.back().begin + longest;
  }

  std::vector<Array> arrays_;
  std::vector<int> input_;
  bench::DeviceArray<Array> device_arrays_;
  bench::DeviceArray<int> device_input_;
  bench::DeviceArray<unsigned> values_;
};

}  // namespace

int main(int argc, char** argv) {
  long long arrays = 4096, longest = 2048;
  bench::WaitingOptions options("scan", "prefix sums by blocks that wait for the sums of their tiles");
  options.integer("arrays", arrays, 1, "arrays to add up");
  options.integer("longest", longest, 1, "values of the longest array");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "arrays", arrays, 1 << 16);
  bench::require_at_most(options.name(), "longest", longest, 1 << 14);
  Scan program(random_arrays(static_cast<int>(arrays), static_cast<int>(longest), options.common.seed),
               options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
