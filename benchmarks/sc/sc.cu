// Stream compaction, in place: the elements that satisfy a predicate move to the front and keep their order.
//
// One of the "data sliding" algorithms of Gomez-Luna et al. that the KLAP paper promotes. A link of the chain
// reads a tile, counts what is kept, launches the next link with the offset that follows from it, and only
// then writes: all that the next link needs is known before.
//
// `--variant flat` is one kernel with decoupled look-back, `--variant library` CUB's DeviceSelect::If, both
// in place too.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/selection.cuh"
#include "../common/tile_chain.cuh"
#include "library.h"

using bench::kTileBlock;
using bench::Link;

template <int kPerThread>
__device__ __forceinline__ void write_kept(int* data, const int (&value)[kPerThread], unsigned kept,
                                           int first) {
  bench::with_ranks<kPerThread>(kept, first, [&](int i, int rank) {
    if ((kept >> i) & 1U) data[rank] = value[i];
  });
}

// One link. It is safe in place although links overlap: a tile's kept elements go to places before the tile's
// end, all of which belong to this tile, which the whole block has read when count_chosen returns, or to
// tiles of earlier links, which were read before this link was launched. So nothing is overwritten unread;
// and a late write of this link can not meet a later link's accesses, which read beyond this tile's end and
// write at offsets beyond this link's.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    compact(int* data, int elements, int limit, int tile, int offset, int* size, unsigned long long* lost) {
  int value[kPerThread];
  const unsigned kept = bench::read_and_choose(data, elements, limit, tile, value);
  const auto count = bench::count_chosen(kept);
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0) {
    const int next_offset = offset + count.total;
    if (tile + 1 < bench::tiles_for<kPerThread>(elements)) {
      compact<kPerThread, kLink><<<1, kTileBlock>>>(data, elements, limit, tile + 1, next_offset, size, lost);
      bench::count_if_lost<kLink == Link::Counting>(lost);
    } else {
      *size = next_offset;
    }
  }
  write_kept(data, value, kept, offset + count.before);
}

// The same tile by tile; that all earlier tiles were read before a tile is written follows from the
// look-back, which ends only when each of them, or one that stands for it, has published its count.
template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    compact_flat(int* data, int elements, int limit, bench::TileWords words, int* size) {
  const int tile = bench::draw_number(words);
  int value[kPerThread];
  const unsigned kept = bench::read_and_choose(data, elements, limit, tile, value);
  const auto count = bench::count_chosen(kept);
  const int offset = bench::prefix_of_tile<bench::Sum, true>(words, tile, count.total);
  if (threadIdx.x == 0 && tile + 1 == bench::tiles_for<kPerThread>(elements)) *size = offset + count.total;
  write_kept(data, value, kept, offset + count.before);
}

namespace {

template <int kPerThread>
class Compaction final : public bench::TileChain<kPerThread> {
  using Chain = bench::TileChain<kPerThread>;

 public:
  Compaction(const std::vector<int>& values, int limit, const bench::ChainOptions& chain,
             const bench::CommonOptions& options)
      : Chain(static_cast<int>(values.size()), chain, options),
        limit_(limit),
        original_(values),
        data_(values.size()),
        size_(1) {
    std::copy_if(values.begin(), values.end(), std::back_inserter(expected_),
                 [limit](int value) { return value < limit; });
    this->prepare_library();
  }

  std::string verify() override { return bench::selection_mistake(expected_, size_, data_); }

 protected:
  void restore() override {
    bench::check(cudaMemcpy(data_.data(), original_.data(), data_.bytes(), cudaMemcpyDeviceToDevice),
                 "restoring the elements");
    size_.fill_bytes(0xff);
  }
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &compact<kPerThread, Link::Plain>, &compact<kPerThread, Link::Counting>,
                                &compact<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(data_.data(), this->elements(), limit_, 0, 0, size_.data(), lost);
  }
  void run_flat(const bench::TileWords& words) override {
    compact_flat<kPerThread>
        <<<this->tiles(), kTileBlock>>>(data_.data(), this->elements(), limit_, words, size_.data());
  }
  cudaError_t library(void* memory, size_t& bytes) override {
    return library_compact(memory, bytes, data_.data(), this->elements(), limit_, size_.data());
  }
  void describe_problem(bench::JsonObject& report) const override {
    report.add("kept", static_cast<long long>(expected_.size()));
  }
  long long bytes_to_move() const override {
    return 4LL * this->elements() + 4 * static_cast<long long>(expected_.size());
  }

 private:
  int limit_;
  std::vector<int> expected_;
  bench::DeviceArray<int> original_;
  bench::DeviceArray<int> data_;
  bench::DeviceArray<int> size_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::SelectionOptions selection;
  bench::Options options("sc", "stream compaction as a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  selection.add_to(options);
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  selection.require_valid("sc");
  bench::require_device("sc");
  return bench::run_chain_benchmark<Compaction>(
      "sc", common, chain, bench::random_values(selection.elements, common.seed), selection.limit());
}
