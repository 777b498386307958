// Stream compaction in place: the elements below a limit move to the front and keep their order.
//
// A kernel of one block does one tile. How many elements it keeps says where the next tile's elements go, so
// it launches itself for that tile. The launch is the last thing that needs the counts; the writes follow it.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kTile = 512;
constexpr int kWarp = 32;
constexpr int kLimit = 1 << 29;
constexpr unsigned kValues = 1U << 30;

struct Ranks {
  int before;  // how many elements are kept in front of this thread's
  int total;
};

// Ranks the threads of the block for which `keep` is true. All threads call this.
__device__ Ranks rank_in_block(bool keep) {
  __shared__ int kept_by_warp[kTile / kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned kept = __ballot_sync(~0U, keep);
  if (lane == 0) kept_by_warp[warp] = __popc(kept);
  const int total = __syncthreads_count(keep);
  int before = __popc(kept & ((1U << lane) - 1));
  for (int i = 0; i < warp; ++i) before += kept_by_warp[i];
  return {before, total};
}

// It may run beside the next tile's kernel: it writes only where elements were read before that was launched.
template <bool kCount>
__global__ void compact(int* data, int elements, int begin, int first, int* size, unsigned long long* lost) {
  const int i = begin + static_cast<int>(threadIdx.x);
  const int value = i < elements ? data[i] : kLimit;
  const bool keep = value < kLimit;
  const Ranks ranks = rank_in_block(keep);
  if (threadIdx.x == 0) {
    const int next_first = first + ranks.total;
    if (begin + kTile < elements) {
      compact<kCount><<<1, kTile>>>(data, elements, begin + kTile, next_first, size, lost);
      bench::count_if_lost<kCount>(lost);
    } else {
      *size = next_first;
    }
  }
  if (keep) data[first + ranks.before] = value;
}

namespace {

class Compaction final : public bench::StreamProgram {
 public:
  Compaction(const std::vector<int>& values, const bench::CommonOptions& options)
      : StreamProgram(options),
        elements_(static_cast<int>(values.size())),
        original_(values),
        data_(values),
        size_(1) {
    std::copy_if(values.begin(), values.end(), std::back_inserter(expected_),
                 [](int value) { return value < kLimit; });
  }

  [[nodiscard]] std::string verify() override {
    std::vector<int> found = data_.to_host();
    found.resize(static_cast<size_t>(std::clamp(size_.to_host()[0], 0, elements_)));
    return bench::differences("elements", expected_, found);
  }

 private:
  void restore() override {
    bench::check(cudaMemcpy(data_.data(), original_.data(), data_.bytes(), cudaMemcpyDeviceToDevice),
                 "cudaMemcpy");
    size_.fill_bytes(0xff);
  }
  void launch(bool count) override {
    (count ? compact<true> : compact<false>)<<<1, kTile>>>(data_.data(), elements_, 0, 0, size_.data(),
                                                           lost());
  }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("elements", elements_).add("kept", static_cast<long long>(expected_.size()));
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = bench::blocks_for(elements_, kTile) - 1,
            .bytes_to_move = 4LL * elements_ + 4LL * static_cast<long long>(expected_.size())};
  }

  int elements_;
  std::vector<int> expected_;
  bench::DeviceArray<int> original_, data_, size_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp"});
  long long elements = 500000;
  bench::Options options("compaction", "stream compaction by kernels that launch the next tile's");
  options.integer("elements", elements, 1, "length of the sequence");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("compaction", "elements", elements, 1 << 28);
  bench::require_device("compaction");
  Compaction program(bench::random_values_below(kValues, elements, common.seed), common);
  return bench::run_benchmark("compaction", common, program);
}
