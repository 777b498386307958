// Quicksort whose two halves are launches into the NULL stream.
//
// A kernel of one thread partitions a range in place and launches itself for both halves. The second half's
// launch runs behind the first one, with all launches that the first one leads to. So the sort is depth
// first, one range at a time. Short ranges are sorted by insertion.
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kShortest = 32;

struct Halves {
  int end_of_first;
  int begin_of_second;
};

// Both sides go on from where they meet, past values that are equal to the pivot.
__host__ __device__ inline Halves partition(int* values, int begin, int end) {
  const int pivot = values[begin + (end - begin) / 2];
  int left = begin;
  int right = end - 1;
  while (left <= right) {
    while (values[left] < pivot) ++left;
    while (values[right] > pivot) --right;
    if (left > right) break;
    const int value = values[left];
    values[left++] = values[right];
    values[right--] = value;
  }
  return {right + 1, left};
}

__host__ __device__ inline void sort_by_insertion(int* values, int begin, int end) {
  for (int i = begin + 1; i < end; ++i) {
    const int value = values[i];
    int at = i;
    for (; at > begin && values[at - 1] > value; --at) values[at] = values[at - 1];
    values[at] = value;
  }
}

template <bool kCount>
__global__ void sort_range(int* values, int begin, int end, unsigned long long* lost) {
  if (end - begin <= kShortest) {
    sort_by_insertion(values, begin, end);
    return;
  }
  const Halves halves = partition(values, begin, end);
  if (halves.end_of_first - begin > 1) {
    sort_range<kCount><<<1, 1>>>(values, begin, halves.end_of_first, lost);
    bench::count_if_lost<kCount>(lost);
  }
  if (end - halves.begin_of_second > 1) {
    sort_range<kCount><<<1, 1>>>(values, halves.begin_of_second, end, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

long long launches_for(std::vector<int>& values, int begin, int end) {
  if (end - begin <= kShortest) return 0;
  const Halves halves = partition(values.data(), begin, end);
  long long launches = 0;
  if (halves.end_of_first - begin > 1) launches += 1 + launches_for(values, begin, halves.end_of_first);
  if (end - halves.begin_of_second > 1) launches += 1 + launches_for(values, halves.begin_of_second, end);
  return launches;
}

class Quicksort final : public bench::ArrayProgram<int> {
 public:
  Quicksort(std::vector<int> input, const bench::CommonOptions& options)
      : ArrayProgram(options, "values", input, bench::sorted(input)),
        n_(static_cast<int>(input.size())),
        launches_(launches_for(input, 0, n_)) {}

 private:
  void launch(bool count) override {
    (count ? sort_range<true> : sort_range<false>)<<<1, 1>>>(data(), 0, n_, lost());
  }
  void describe_sizes(bench::JsonObject& report) const override { report.add("elements", n_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = launches_, .bytes_to_move = 8LL * n_};
  }

  int n_;
  long long launches_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp"});
  long long elements = 20000;
  bench::Options options("qsort", "quicksort with a launch into the NULL stream for each half");
  options.integer("elements", elements, 2, "values to sort");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("qsort", "elements", elements, 1 << 28);
  bench::require_device("qsort");
  Quicksort program(bench::random_values_below(1U << 30, elements, common.seed), common);
  return bench::run_benchmark("qsort", common, program);
}
