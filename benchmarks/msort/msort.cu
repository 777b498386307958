// Merge sort from the bottom up: a level is a launch of merges, and the next level is a tail launch behind
// it.
//
// A kernel of one thread launches the merges of a level into its NULL stream, and itself for the next level
// into the tail-launch stream. So the next level begins when all merges of this one are complete. A merge has
// a thread for each element, which finds the element's place by binary search in the run that its own one is
// merged with.
//
// `--variant flat` launches the levels from the host.
#include <cstdint>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kBlock = 256;

// How many of the values [begin, end), which are sorted, go before `value`; equal ones only if `with_equal`.
__device__ int count_before(const int* values, int begin, int end, int value, bool with_equal) {
  const int first = begin;
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    const bool is_before = with_equal ? values[middle] <= value : values[middle] < value;
    if (is_before) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin - first;
}

// Merges runs of `width` values in pairs.
__global__ void merge(const int* from, int* to, int n, int width) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const int run = i / width;
  const bool is_second = run % 2 == 1;
  const int other = (is_second ? run - 1 : run + 1) * width;
  const int begin = min(other, n);
  const int end = min(other + width, n);
  const int value = from[i];
  const int pair = run / 2 * 2 * width;
  to[pair + i % width + count_before(from, begin, end, value, is_second)] = value;
}

template <bool kCount>
__global__ void sort_from(int* from, int* to, int n, int width, unsigned long long* lost) {
  merge<<<bench::blocks_for(n, kBlock), kBlock>>>(from, to, n, width);
  bench::count_if_lost<kCount>(lost);
  if (2LL * width < n) {
    sort_from<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(to, from, n, 2 * width, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

class MergeSort final : public bench::ArrayProgram<int> {
 public:
  MergeSort(const std::vector<int>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "values", input, bench::sorted(input)),
        n_(static_cast<int>(input.size())),
        other_(input.size()) {}

  // After an odd number of levels the values are in the other array.
  [[nodiscard]] std::string verify() override {
    return levels() % 2 == 0 ? ArrayProgram::verify()
                             : bench::differences(what(), expected(), other_.to_host());
  }

 private:
  void launch(bool count) override {
    (count ? sort_from<true> : sort_from<false>)<<<1, 1>>>(data(), other_.data(), n_, 1, lost());
  }

  void launch_flat() override {
    for (int level = 0; level < levels(); ++level) {
      int* const from = level % 2 == 0 ? data() : other_.data();
      int* const to = level % 2 == 0 ? other_.data() : data();
      merge<<<bench::blocks_for(n_, kBlock), kBlock>>>(from, to, n_, 1 << level);
    }
  }

  void describe_sizes(bench::JsonObject& report) const override { report.add("elements", n_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = 2LL * levels() - 1, .bytes_to_move = 8LL * n_, .flat_kernels = levels()};
  }

  [[nodiscard]] int levels() const {
    int count = 0;
    while ((1LL << count) < n_) ++count;
    return count;
  }

  int n_;
  bench::DeviceArray<int> other_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long elements = 100000;
  bench::Options options("msort", "merge sort with a tail launch for each level");
  options.integer("elements", elements, 2, "values to sort");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("msort", "elements", elements, 1 << 28);
  bench::require_device("msort");
  MergeSort program(bench::random_values_below(1U << 30, elements, common.seed), common);
  return bench::run_benchmark("msort", common, program);
}
