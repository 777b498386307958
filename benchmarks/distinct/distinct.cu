// The distinct values of many sets, by CUB's radix sort and selection, which a kernel calls.
//
// A block of one thread for each set calls cub::DeviceRadixSort::SortKeys(), and cub::DeviceSelect::Unique()
// for what is sorted. These functions are code of the kernel itself: they clear memory by cudaMemsetAsync(),
// ask for the device and for errors, and launch CUB's kernels, one behind the other in the block's NULL
// stream. One kernel is launched in a loop, for eight bits after eight bits.
//
// `--variant library` calls the same functions from the host.
#include <algorithm>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <string>
#include <utility>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

// The launches of a sort: one counts, one adds up, and each of four takes eight bits. A selection has two.
constexpr int kSortLaunches = 6;
constexpr int kSelectLaunches = 2;
constexpr int kSmallestSet = 8192;  // CUB sorts small ones by a single launch

// Sets one after another, of equally many values. Each has its own temporary storage.
struct Sets {
  const unsigned* values;
  unsigned* sorted;
  unsigned* distinct;
  int* counts;  // of the distinct values
  unsigned char* storage;
  size_t storage_bytes;
  int size;
};

// The error of the first function that has one.
__host__ __device__ inline cudaError_t find_distinct(const Sets& sets, unsigned set) {
  unsigned char* const storage = sets.storage + set * sets.storage_bytes;
  const size_t first = static_cast<size_t>(set) * sets.size;
  size_t bytes = sets.storage_bytes;
  const cudaError_t error =
      cub::DeviceRadixSort::SortKeys(storage, bytes, sets.values + first, sets.sorted + first, sets.size);
  if (error != cudaSuccess) return error;
  return cub::DeviceSelect::Unique(storage, bytes, sets.sorted + first, sets.distinct + first,
                                   sets.counts + set, sets.size);
}

__global__ void find(Sets sets, unsigned long long* lost) {
  if (find_distinct(sets, blockIdx.x) != cudaSuccess) atomicAdd(lost, 1ULL);
}

namespace {

struct Sizes {
  long long sets = 50;
  long long elements = 10000;
};

using Numbers = std::vector<unsigned>;

// Each is drawn about four times in a set.
Numbers random_values(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Numbers values(static_cast<size_t>(sizes.sets * sizes.elements));
  for (unsigned& value : values)
    value = static_cast<unsigned>(bench::mix(random.below(static_cast<uint32_t>(sizes.elements / 4))));
  return values;
}

// For each set.
std::vector<Numbers> distinct_values(const Numbers& values, long long elements) {
  std::vector<Numbers> sets;
  for (auto begin = values.begin(); begin != values.end(); begin += elements) {
    Numbers set(begin, begin + elements);
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    sets.push_back(std::move(set));
  }
  return sets;
}

// The bytes that both functions need, as they say themselves.
size_t storage_bytes_for(int size) {
  size_t for_sort = 0;
  size_t for_selection = 0;
  unsigned* const none = nullptr;
  int* const no_count = nullptr;
  bench::check(cub::DeviceRadixSort::SortKeys(nullptr, for_sort, none, none, size), "asking CUB");
  bench::check(cub::DeviceSelect::Unique(nullptr, for_selection, none, none, no_count, size), "asking CUB");
  constexpr size_t kAlignment = 256;
  return (std::max(for_sort, for_selection) + kAlignment - 1) / kAlignment * kAlignment;
}

class Distinct final : public bench::StreamProgram {
 public:
  Distinct(const Sizes& sizes, const Numbers& values, const bench::CommonOptions& options)
      : StreamProgram(options),
        sizes_(sizes),
        storage_bytes_(storage_bytes_for(static_cast<int>(sizes.elements))),
        expected_(distinct_values(values, sizes.elements)),
        values_(values),
        sorted_(values.size()),
        distinct_(values.size()),
        counts_(expected_.size()),
        storage_(storage_bytes_ * expected_.size()) {}

  [[nodiscard]] std::string verify() override {
    const std::vector<int> counts = counts_.to_host();
    const Numbers distinct = distinct_.to_host();
    for (size_t set = 0; set < expected_.size(); ++set) {
      const auto begin = distinct.begin() + static_cast<long long>(set) * sizes_.elements;
      const Numbers found(begin, begin + std::clamp<long long>(counts[set], 0, sizes_.elements));
      const std::string mistake = bench::differences("distinct values", expected_[set], found);
      if (!mistake.empty()) return "set " + std::to_string(set) + ": " + mistake;
    }
    return "";
  }

 private:
  [[nodiscard]] Sets sets() const {
    return {values_.data(),
            sorted_.data(),
            distinct_.data(),
            counts_.data(),
            storage_.data(),
            storage_bytes_,
            static_cast<int>(sizes_.elements)};
  }

  void restore() override {
    distinct_.fill_bytes(0x55);
    counts_.fill_bytes(0);
    storage_.fill_bytes(0x55);
  }
  void launch(bool /*count*/) override { find<<<static_cast<unsigned>(sizes_.sets), 1>>>(sets(), lost()); }
  void launch_flat() override {
    for (unsigned set = 0; set < expected_.size(); ++set) bench::check(find_distinct(sets(), set), "CUB");
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("sets", sizes_.sets).add("elements", sizes_.elements);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    long long found = 0;
    for (const Numbers& set : expected_) found += static_cast<long long>(set.size());
    return {.child_launches = sizes_.sets * (kSortLaunches + kSelectLaunches),
            .bytes_to_move = 4 * (sizes_.sets * sizes_.elements + found),
            .flat_kernels = bench::RunFacts::kUnknown};
  }

  Sizes sizes_;
  size_t storage_bytes_;
  std::vector<Numbers> expected_;
  bench::DeviceArray<unsigned> values_;
  bench::DeviceArray<unsigned> sorted_;
  bench::DeviceArray<unsigned> distinct_;
  bench::DeviceArray<int> counts_;
  bench::DeviceArray<unsigned char> storage_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "library"});
  Sizes sizes;
  bench::Options options("distinct", "distinct values, by CUB's functions called in a kernel");
  options.integer("sets", sizes.sets, 1, "sets of values");
  options.integer("elements", sizes.elements, kSmallestSet, "values of a set");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("distinct", "sets", sizes.sets, 65535);
  bench::require_at_most("distinct", "elements", sizes.elements, 1 << 28);
  bench::require_device("distinct");
  Distinct program(sizes, random_values(sizes, common.seed), common);
  return bench::run_benchmark("distinct", common, program);
}
