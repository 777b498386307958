// What it costs to keep the order of launches: children that do next to nothing but count, each in a word
// that all launches of its block share.
//
// CUDA runs what the threads of a block launch into the block's NULL stream one after another, so the plain
// increment of a shared word loses nothing. A rewrite must keep that order. The options say how many blocks
// have such a sequence side by side, how many threads of each launch, and how often each does so in a loop.
//
// `--variant flat` adds up without launches: a thread for each block.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"

constexpr int kChildBlock = 32;
constexpr int kFlatBlock = 128;

// As much apart as the words of different blocks are.
constexpr int kWords = 32;

__global__ void count(unsigned* word) {
  if (threadIdx.x == 0) *word = *word + 1;
}

template <bool kCount>
__global__ void launch(unsigned* words, unsigned long long* lost) {
  count<<<1, kChildBlock>>>(words + kWords * blockIdx.x);
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void launch_in_loop(unsigned* words, int times, unsigned long long* lost) {
#pragma unroll 1
  for (int i = 0; i < times; ++i) {
    count<<<1, kChildBlock>>>(words + kWords * blockIdx.x);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void add_up(unsigned* words, int blocks, unsigned sum) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < blocks) words[kWords * i] = sum;
}

namespace {

struct OrderedOptions {
  long long blocks = 1, threads = 1000, times = 1;
};

class Ordered final : public bench::Benchmark {
 public:
  Ordered(const OrderedOptions& options, const bench::CommonOptions& common)
      : options_(options),
        flat_(common.variant == "flat"),
        words_(static_cast<size_t>(options.blocks * kWords)),
        lost_(1) {}

  void reset() override { words_.fill_bytes(0); }

  void run() override {
    if (flat_) {
      add_up<<<bench::blocks_for(options_.blocks, kFlatBlock), kFlatBlock>>>(
          words_.data(), static_cast<int>(options_.blocks), sum());
    } else {
      launch_all<false>();
    }
    bench::check(cudaGetLastError(), "launching the kernel");
  }

  long long count_lost_launches() override {
    lost_.fill_bytes(0);
    launch_all<true>();
    bench::check(cudaGetLastError(), "launching the counting kernel");
    return static_cast<long long>(lost_.to_host().front());
  }

  [[nodiscard]] std::string verify() override {
    const std::vector<unsigned> found = words_.to_host();
    for (long long i = 0; i < options_.blocks; ++i) {
      const unsigned value = found[static_cast<size_t>(i * kWords)];
      if (value != sum())
        return "block " + std::to_string(i) + " counted " + std::to_string(value) + " instead of " +
               std::to_string(sum());
    }
    return "";
  }

  void describe(bench::JsonObject& report) const override {
    report.add("blocks", options_.blocks).add("threads", options_.threads).add("times", options_.times);
    report.add("child_launches", flat_ ? 0LL : options_.blocks * sum());
    report.add("bytes_to_move", 8LL * options_.blocks);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    return bench::HostWork{.kernels = 1, .parents = flat_ ? 0 : 1};
  }

 private:
  [[nodiscard]] unsigned sum() const { return static_cast<unsigned>(options_.threads * options_.times); }

  template <bool kCount>
  void launch_all() {
    const auto blocks = static_cast<unsigned>(options_.blocks);
    const auto threads = static_cast<unsigned>(options_.threads);
    if (options_.times == 1) {
      launch<kCount><<<blocks, threads>>>(words_.data(), lost_.data());
    } else {
      launch_in_loop<kCount>
          <<<blocks, threads>>>(words_.data(), static_cast<int>(options_.times), lost_.data());
    }
  }

  OrderedOptions options_;
  bool flat_;
  bench::DeviceArray<unsigned> words_;
  bench::DeviceArray<unsigned long long> lost_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  OrderedOptions ordered;
  bench::Options options("ordered", "what it costs to keep the order of a block's launches");
  options.integer("blocks", ordered.blocks, 1, "blocks of the parent");
  options.integer("threads", ordered.threads, 1, "threads of each, all of which launch");
  options.integer("times", ordered.times, 1, "how often each launches");
  common.add_to(options);
  options.parse(argc, argv);
  if (ordered.threads > 1024 || ordered.blocks > 65535 || ordered.threads * ordered.times > 1 << 20) {
    std::fprintf(stderr, "ordered: too many threads, blocks or times\n");
    return 2;
  }
  bench::require_device("ordered");
  Ordered benchmark(ordered, common);
  return bench::run_benchmark("ordered", common, benchmark);
}
