// Merge sort from the top down: a block launches two blocks for the halves of its range, waits for them and
// merges what they have sorted.
//
// The block merges short ranges by itself. For a long one it launches a grid behind the wait. A tail launch
// does both, for the two blocks of a grid at once. `--variant flat` has a grid for each level, launched by
// the host.
#include <string>
#include <vector>

#include "waiting_program.h"

namespace {

constexpr int kBlock = 64;     // threads, and the values of a range that a block sorts by itself
constexpr int kLong = 2048;    // values of a range that is merged by a grid
constexpr int kMergers = 256;  // threads of that grid's blocks

// Ranges at even levels end up in the first of two arrays, others in the second.
struct Sort {
  const int* input;
  int* arrays[2];
};

// The number of values in a sorted range that are less than this one, or not greater than it.
__device__ int count_before(const int* values, int count, int value, bool or_equal) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (values[middle] < value || (or_equal && values[middle] == value)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Puts the value at a place of the range's halves where it belongs in the range.
__device__ void merge_value(const int* from, int* to, int size, int place) {
  const int half = size / 2, value = from[place];
  const bool is_left = place < half;
  const int before =
      is_left ? count_before(from + half, half, value, false) : count_before(from, half, value, true) - half;
  to[place + before] = value;
}

// Sorts kBlock values by counting those that come before each.
__device__ void sort_small(const int* from, int* to) {
  __shared__ int values[kBlock];
  const int thread = static_cast<int>(threadIdx.x), value = from[thread];
  values[thread] = value;
  __syncthreads();
  int place = 0;
  for (int i = 0; i < kBlock; ++i) place += values[i] < value || (values[i] == value && i < thread) ? 1 : 0;
  to[place] = value;
}

#ifdef BENCH_WAITS

__global__ void merge_long(const int* from, int* to, int size) {
  merge_value(from, to, size, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

// Block b sorts the range of `size` values that begins at first + b * size.
__global__ void sort(Sort sort_of, int first, int size, int level) {
  const int begin = first + static_cast<int>(blockIdx.x) * size;
  int* const to = sort_of.arrays[level % 2] + begin;
  if (size == kBlock) {
    sort_small(sort_of.input + begin, to);
    return;
  }
  const int* const from = sort_of.arrays[(level + 1) % 2] + begin;
  if (threadIdx.x == 0) {
    sort<<<2, kBlock>>>(sort_of, begin, size / 2, level + 1);
    cudaDeviceSynchronize();
    if (size >= kLong) merge_long<<<size / kMergers, kMergers>>>(from, to, size);
  }
  if (size >= kLong) return;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kBlock) merge_value(from, to, size, i);
}

void launch_sort(const Sort& sort_of, int count, bool, unsigned long long*) {
  sort<<<1, kBlock>>>(sort_of, 0, count, 0);
}
void launch_levels(const Sort&, int) {}

#else

// Merges the ranges of `size` values from `first` on, with a thread for each value.
__global__ void merge(Sort sort_of, int first, int size, int level) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), begin = first + i / size * size;
  merge_value(sort_of.arrays[(level + 1) % 2] + begin, sort_of.arrays[level % 2] + begin, size, i % size);
}

// Block b sorts the range of `size` values that begins at first + b * size.
template <bool kCount>
__global__ void sort(Sort sort_of, int first, int size, int level, unsigned long long* lost) {
  const int begin = first + static_cast<int>(blockIdx.x) * size;
  if (size == kBlock) {
    sort_small(sort_of.input + begin, sort_of.arrays[level % 2] + begin);
    return;
  }
  if (threadIdx.x != 0) return;
  sort<kCount><<<2, kBlock, 0, cudaStreamFireAndForget>>>(sort_of, begin, size / 2, level + 1, lost);
  bench::count_if_lost<kCount>(lost);
  if (blockIdx.x != 0) return;
  const int values = static_cast<int>(gridDim.x) * size, threads = min(values, kMergers);
  merge<<<values / threads, threads, 0, cudaStreamTailLaunch>>>(sort_of, first, size, level);
  bench::count_if_lost<kCount>(lost);
}

void launch_sort(const Sort& sort_of, int count, bool counts, unsigned long long* lost) {
  (counts ? sort<true> : sort<false>)<<<1, kBlock>>>(sort_of, 0, count, 0, lost);
}

__global__ void sort_blocks(Sort sort_of, int level) {
  const int begin = static_cast<int>(blockIdx.x) * kBlock;
  sort_small(sort_of.input + begin, sort_of.arrays[level % 2] + begin);
}

void launch_levels(const Sort& sort_of, int count) {
  int level = 0;
  while (count >> level > kBlock) ++level;
  sort_blocks<<<count / kBlock, kBlock>>>(sort_of, level);
  while (level-- > 0) {
    const int threads = count < kMergers ? count : kMergers;
    merge<<<count / threads, threads>>>(sort_of, 0, count >> level, level);
  }
}

#endif

class MergeSort final : public bench::StreamProgram {
 public:
  MergeSort(const std::vector<int>& values, const bench::CommonOptions& options)
      : StreamProgram(options),
        expected_(bench::sorted(values)),
        count_(static_cast<int>(values.size())),
        input_(values),
        first_(values.size()),
        second_(values.size()) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("values", expected_, first_.to_host());
  }

 private:
  void restore() override {
    first_.fill_bytes(0);
    second_.fill_bytes(0);
  }
  void launch(bool count) override { launch_sort(sort_of(), count_, count, lost()); }
  void launch_flat() override { launch_levels(sort_of(), count_); }
  void describe_sizes(bench::JsonObject& report) const override { report.add("elements", count_); }

  [[nodiscard]] bench::RunFacts facts() const override {
    const int halved = count_ / kBlock - 1;  // ranges that have halves
    const int long_ones = count_ / kLong > 0 ? 2 * (count_ / kLong) - 1 : 0;
    // A tail launch is for both blocks of a grid, and only the first grid has one block.
    const int tails = halved == 0 ? 0 : halved / 2 + 1;
    int levels = 1;
    while (kBlock << (levels - 1) < count_) ++levels;
    return {.child_launches = halved + (bench::kWaits ? long_ones : tails),
            .bytes_to_move = 8LL * count_,
            .flat_kernels = levels};
  }
  [[nodiscard]] Sort sort_of() const { return {input_.data(), {first_.data(), second_.data()}}; }

  std::vector<int> expected_;
  int count_;
  bench::DeviceArray<int> input_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> second_;
};

}  // namespace

int main(int argc, char** argv) {
  long long log2_elements = 18;
  bench::WaitingOptions options("mergesort", "merge sort by blocks that wait for their halves");
  options.integer("log2-elements", log2_elements, 6, "logarithm of the number of values to sort");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "log2-elements", log2_elements, 26);
  MergeSort program(bench::random_values_below(1U << 30, 1LL << log2_elements, options.common.seed),
                    options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
