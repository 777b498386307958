// Stable partition: the elements that satisfy a predicate go to one array and the others to a second one,
// both in their order.
//
// One of the "data sliding" algorithms of Gomez-Luna et al. that the KLAP paper promotes. A link of the chain
// reads a tile, counts what is chosen, launches the next link with the offset that follows from it, and then
// writes. The offset in the other array needs no argument: whatever was not chosen before went there.
//
// `--variant flat` is one kernel with decoupled look-back. `--variant library` is CUB's DevicePartition::If,
// which moves the same bytes but writes the others to the end of the same array, last one first; it is
// checked as such.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/selection.cuh"
#include "library.h"

using bench::kTileBlock;
using bench::Link;

struct Partition {
  const int* input;
  int elements;
  int limit;    // elements below are chosen
  int* chosen;  // in the order of the input, as are the others
  int* others;
  int* size;  // of the chosen
};

// `first` is how many elements before the warp's first one were chosen.
template <int kPerThread>
__device__ __forceinline__ void write_both(const Partition& p, int tile, const int (&value)[kPerThread],
                                           unsigned chosen, int first) {
  bench::with_ranks<kPerThread>(chosen, first, [&](int i, int rank) {
    const int index = bench::element_index<kPerThread>(tile, i);
    if ((chosen >> i) & 1U) {
      p.chosen[rank] = value[i];
    } else if (index < p.elements) {
      p.others[index - rank] = value[i];
    }
  });
}

// One link. The output arrays are not read and every element has its own place in them, so links may overlap.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    partition(Partition p, int tile, int offset, unsigned long long* lost) {
  int value[kPerThread];
  const unsigned chosen = bench::read_and_choose(p.input, p.elements, p.limit, tile, value);
  const auto count = bench::count_chosen(chosen);
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0) {
    const int next_offset = offset + count.total;
    if (tile + 1 < bench::tiles_for<kPerThread>(p.elements)) {
      partition<kPerThread, kLink><<<1, kTileBlock>>>(p, tile + 1, next_offset, lost);
      bench::count_if_lost<kLink == Link::Counting>(lost);
    } else {
      *p.size = next_offset;
    }
  }
  write_both(p, tile, value, chosen, offset + count.before);
}

template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    partition_flat(Partition p, bench::TileWords words) {
  const int tile = bench::draw_number(words);
  int value[kPerThread];
  const unsigned chosen = bench::read_and_choose(p.input, p.elements, p.limit, tile, value);
  const auto count = bench::count_chosen(chosen);
  const int offset = bench::prefix_of_tile<bench::Sum, false>(words, tile, count.total);
  if (threadIdx.x == 0 && tile + 1 == bench::tiles_for<kPerThread>(p.elements))
    *p.size = offset + count.total;
  write_both(p, tile, value, chosen, offset + count.before);
}

namespace {

template <int kPerThread>
class Partitioning final : public bench::TileChain<kPerThread> {
  using Chain = bench::TileChain<kPerThread>;

 public:
  Partitioning(const std::vector<int>& values, int limit, const bench::ChainOptions& chain,
               const bench::CommonOptions& options)
      : Chain(static_cast<int>(values.size()), chain, options),
        limit_(limit),
        input_(values),
        chosen_(values.size()),
        others_(values.size()),
        size_(1) {
    std::partition_copy(values.begin(), values.end(), std::back_inserter(expected_chosen_),
                        std::back_inserter(expected_others_), [limit](int value) { return value < limit; });
    this->prepare_library();
  }

  std::string verify() override {
    const std::string mistake = bench::selection_mistake(expected_chosen_, size_, chosen_);
    if (!mistake.empty()) return mistake;
    std::vector<int> found = this->is_library() ? chosen_.to_host() : others_.to_host();
    if (this->is_library()) std::reverse(found.begin(), found.end());
    found.resize(expected_others_.size());
    return bench::differences("other elements", expected_others_, found);
  }

 protected:
  void restore() override {
    chosen_.fill_bytes(0xff);
    others_.fill_bytes(0xff);
    size_.fill_bytes(0xff);
  }
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &partition<kPerThread, Link::Plain>,
                                &partition<kPerThread, Link::Counting>, &partition<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(on_device(), 0, 0, lost);
  }
  void run_flat(const bench::TileWords& words) override {
    partition_flat<kPerThread><<<this->tiles(), kTileBlock>>>(on_device(), words);
  }
  cudaError_t library(void* memory, size_t& bytes) override {
    return library_partition(memory, bytes, input_.data(), this->elements(), limit_, chosen_.data(),
                             size_.data());
  }
  void describe_problem(bench::JsonObject& report) const override {
    report.add("chosen", static_cast<long long>(expected_chosen_.size()));
  }
  long long bytes_to_move() const override { return 8LL * this->elements(); }

 private:
  [[nodiscard]] Partition on_device() const {
    return {input_.data(), this->elements(), limit_, chosen_.data(), others_.data(), size_.data()};
  }

  int limit_;
  std::vector<int> expected_chosen_;
  std::vector<int> expected_others_;
  bench::DeviceArray<int> input_;
  bench::DeviceArray<int> chosen_;
  bench::DeviceArray<int> others_;
  bench::DeviceArray<int> size_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::SelectionOptions selection;
  bench::Options options("pt", "stable partition as a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  selection.add_to(options);
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  selection.require_valid("pt");
  bench::require_device("pt");
  return bench::run_chain_benchmark<Partitioning>(
      "pt", common, chain, bench::random_values(selection.elements, common.seed), selection.limit());
}
