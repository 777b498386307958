// Unique: the elements that differ from the one before them, in their order.
//
// One of the "data sliding" algorithms of Gomez-Luna et al. that the KLAP paper promotes. A link of the chain
// reads a tile and the element before it, counts what is kept, launches the next link with the offset that
// follows from it, and then writes to a second array.
//
// `--variant flat` is one kernel with decoupled look-back, `--variant library` CUB's DeviceSelect::Unique.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/selection.cuh"
#include "library.h"

using bench::kTileBlock;
using bench::Link;

// Reads the thread's elements and says which of them differ from the one before. A row's elements are in the
// lanes of a warp; the one before its first is the last of the previous row.
template <int kPerThread>
__device__ __forceinline__ unsigned read_and_compare(const int* __restrict__ input, int elements, int tile,
                                                     int (&value)[kPerThread]) {
  const int warp_begin = bench::element_index<kPerThread>(tile, 0) - bench::lane_index();
  int before = 0;
  if (warp_begin > 0 && warp_begin <= elements) before = input[warp_begin - 1];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = bench::element_index<kPerThread>(tile, i);
    value[i] = index < elements ? input[index] : 0;
  }
  unsigned kept = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = bench::element_index<kPerThread>(tile, i);
    const int in_lower_lane = __shfl_up_sync(bench::kAllLanes, value[i], 1);
    const int previous = bench::lane_index() == 0 ? before : in_lower_lane;
    if (index < elements && (index == 0 || value[i] != previous)) kept |= 1U << i;
    before = __shfl_sync(bench::kAllLanes, value[i], 31);
  }
  return kept;
}

template <int kPerThread>
__device__ __forceinline__ void write_kept(int* output, const int (&value)[kPerThread], unsigned kept,
                                           int first) {
  bench::with_ranks<kPerThread>(kept, first, [&](int i, int rank) {
    if ((kept >> i) & 1U) output[rank] = value[i];
  });
}

// One link. The output is not read and every kept element has its own place in it, so links may overlap.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    unique(const int* __restrict__ input, int elements, int tile, int offset, int* output, int* size,
           unsigned long long* lost) {
  int value[kPerThread];
  const unsigned kept = read_and_compare(input, elements, tile, value);
  const auto count = bench::count_chosen(kept);
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0) {
    const int next_offset = offset + count.total;
    if (tile + 1 < bench::tiles_for<kPerThread>(elements)) {
      unique<kPerThread, kLink>
          <<<1, kTileBlock>>>(input, elements, tile + 1, next_offset, output, size, lost);
      bench::count_if_lost<kLink == Link::Counting>(lost);
    } else {
      *size = next_offset;
    }
  }
  write_kept(output, value, kept, offset + count.before);
}

template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    unique_flat(const int* __restrict__ input, int elements, int* output, bench::TileWords words, int* size) {
  const int tile = bench::draw_number(words);
  int value[kPerThread];
  const unsigned kept = read_and_compare(input, elements, tile, value);
  const auto count = bench::count_chosen(kept);
  const int offset = bench::prefix_of_tile<bench::Sum, false>(words, tile, count.total);
  if (threadIdx.x == 0 && tile + 1 == bench::tiles_for<kPerThread>(elements)) *size = offset + count.total;
  write_kept(output, value, kept, offset + count.before);
}

namespace {

// An element differs from the one before it in `keep` percent of all cases.
std::vector<int> values_with_runs(long long count, long long keep, uint64_t seed) {
  bench::Random random(seed);
  std::vector<int> values(count);
  int current = 0;
  for (int& value : values) {
    if (random.below(100) < static_cast<uint32_t>(keep)) {
      current += 1 + static_cast<int>(random.below(1000));
      current %= bench::kValueRange;
    }
    value = current;
  }
  return values;
}

template <int kPerThread>
class Uniqueness final : public bench::TileChain<kPerThread> {
  using Chain = bench::TileChain<kPerThread>;

 public:
  Uniqueness(const std::vector<int>& values, const bench::ChainOptions& chain,
             const bench::CommonOptions& options)
      : Chain(static_cast<int>(values.size()), chain, options),
        input_(values),
        output_(values.size()),
        size_(1) {
    std::unique_copy(values.begin(), values.end(), std::back_inserter(expected_));
    this->prepare_library();
  }

  std::string verify() override { return bench::selection_mistake(expected_, size_, output_); }

 protected:
  void restore() override {
    output_.fill_bytes(0xff);
    size_.fill_bytes(0xff);
  }
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &unique<kPerThread, Link::Plain>, &unique<kPerThread, Link::Counting>,
                                &unique<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(input_.data(), this->elements(), 0, 0, output_.data(), size_.data(), lost);
  }
  void run_flat(const bench::TileWords& words) override {
    unique_flat<kPerThread>
        <<<this->tiles(), kTileBlock>>>(input_.data(), this->elements(), output_.data(), words, size_.data());
  }
  cudaError_t library(void* memory, size_t& bytes) override {
    return library_unique(memory, bytes, input_.data(), this->elements(), output_.data(), size_.data());
  }
  void describe_problem(bench::JsonObject& report) const override {
    report.add("kept", static_cast<long long>(expected_.size()));
  }
  long long bytes_to_move() const override {
    return 4LL * this->elements() + 4 * static_cast<long long>(expected_.size());
  }

 private:
  std::vector<int> expected_;
  bench::DeviceArray<int> input_;
  bench::DeviceArray<int> output_;
  bench::DeviceArray<int> size_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::SelectionOptions selection;
  bench::Options options("unq", "dropping repeated elements, a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  selection.add_to(options);
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  selection.require_valid("unq");
  bench::require_device("unq");
  return bench::run_chain_benchmark<Uniqueness>(
      "unq", common, chain, values_with_runs(selection.elements, selection.keep, common.seed));
}
