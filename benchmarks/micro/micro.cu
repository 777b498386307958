// What a launch costs that is recorded and run with many others: a parent whose threads launch children that
// do next to nothing.
//
// Of `--parents` threads the first `--children` launch a child each, of `--blocks` blocks of `--threads`
// threads. Every thread of a child stores one word, so a child that is lost or run with another's arguments
// shows. With no children at all it is the same kernel, with a consumer that finds nothing to run.
//
// `--variant flat` is a kernel of as many threads as all children have. Where there are no children it is the
// parent without its launch.
//
// With `--words N` a child stores N words, however many threads it has, in a grid-stride loop.
//
// `--rounds` kernels one after another, without children and with little in the first place, are what a
// kernel costs that waits for another, and with `--reads` what it costs that the host waits for each. Floors
// of other programs are made of these.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"

constexpr int kParentBlock = 128;
constexpr int kFlatBlock = 256;

// What belongs at a place of the output.
__host__ __device__ inline int word_at(long long place) { return static_cast<int>(place % 1000003) + 1; }

__global__ void store(int* out, long long first, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[first + i] = word_at(first + i);
}

template <int kThreads, bool kCount>
__global__ void launch(int* out, int parents, int children, int blocks, unsigned long long* lost) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= parents || i >= children) return;
  const int count = blocks * kThreads;
  store<<<blocks, kThreads>>>(out, static_cast<long long>(i) * count, count);
  bench::count_if_lost<kCount>(lost);
}

__global__ void store_in_strides(int* out, long long first, int count) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += gridDim.x * blockDim.x) {
    out[first + i] = word_at(first + i);
  }
}

template <int kThreads, bool kCount>
__global__ void launch_striding(int* out, int children, int blocks, int words, unsigned long long* lost) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= children) return;
  store_in_strides<<<blocks, kThreads>>>(out, static_cast<long long>(i) * words, words);
  bench::count_if_lost<kCount>(lost);
}

__global__ void store_all(int* out, long long words) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < words) out[i] = word_at(i);
}

// The parent's own work: nothing but to see that it launches nothing.
__global__ void launch_none(int* out, int parents, int children) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= parents || i >= children) return;
  out[i] = 0;
}

// The first place where something else is than belongs there, into `first`, which is no less than `words`. On
// the device, because ten million warps write more than a host looks through in a second.
__global__ void find_mistake(const int* out, long long words, unsigned long long* first) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += threads) {
    if (out[i] != word_at(i)) atomicMin(first, static_cast<unsigned long long>(i));
  }
}

namespace {

struct MicroOptions {
  long long parents = 0, children = 100000, blocks = 1, threads = 1, words = 0, rounds = 1;
  bool reads = false;
};

class Micro final : public bench::Benchmark {
 public:
  Micro(const MicroOptions& options, const bench::CommonOptions& common)
      : options_(options),
        flat_(common.variant == "flat"),
        words_(options.children * (options.words != 0 ? options.words : options.blocks * options.threads)),
        out_(static_cast<size_t>(words_)),
        first_mistake_(1),
        lost_(1) {
    bench::check(cudaMallocHost(&read_, sizeof *read_), "cudaMallocHost");
  }
  ~Micro() override { cudaFreeHost(read_); }
  Micro(const Micro&) = delete;
  Micro& operator=(const Micro&) = delete;

  void reset() override { out_.fill_bytes(0); }

  void run() override {
    for (long long round = 0; round < options_.rounds; ++round) {
      launch_kernel();
      bench::check(cudaGetLastError(), "launching the kernel");
      if (!options_.reads) continue;
      bench::check(cudaMemcpy(read_, lost_.data(), sizeof *read_, cudaMemcpyDeviceToHost), "a round");
    }
  }

  long long count_lost_launches() override {
    lost_.fill_bytes(0);
    for (long long round = 0; round < options_.rounds; ++round) launch_all<true>();
    bench::check(cudaGetLastError(), "launching the counting kernel");
    return static_cast<long long>(lost_.to_host().front());
  }

  [[nodiscard]] std::string verify() override {
    if (words_ == 0) return "";
    constexpr unsigned kMostBlocks = 4096;
    first_mistake_.fill_bytes(0xff);
    find_mistake<<<std::min(bench::blocks_for(words_, kFlatBlock), kMostBlocks), kFlatBlock>>>(
        out_.data(), words_, first_mistake_.data());
    bench::check(cudaGetLastError(), "launching the check");
    const auto place = static_cast<long long>(first_mistake_.to_host().front());
    if (place < 0) return "";  // none
    int word = 0;
    bench::check(cudaMemcpy(&word, out_.data() + place, sizeof word, cudaMemcpyDeviceToHost), "the mistake");
    return "word " + std::to_string(place) + " is " + std::to_string(word) + " instead of " +
           std::to_string(word_at(place));
  }

  void describe(bench::JsonObject& report) const override {
    report.add("parents", options_.parents).add("children", options_.children);
    report.add("blocks", options_.blocks).add("threads", options_.threads).add("rounds", options_.rounds);
    if (options_.words != 0) report.add("words", options_.words);
    report.add("child_launches", flat_ ? 0LL : options_.children * options_.rounds);
    report.add("bytes_to_move", 4LL * words_ * options_.rounds);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    return bench::HostWork{.kernels = options_.rounds,
                           .parents = flat_ ? 0 : options_.rounds,
                           .reads = options_.reads ? options_.rounds : 0};
  }

 private:
  void launch_kernel() {
    if (flat_ && words_ == 0) {
      launch_none<<<bench::blocks_for(options_.parents, kParentBlock), kParentBlock>>>(
          out_.data(), static_cast<int>(options_.parents), 0);
    } else if (flat_) {
      store_all<<<bench::blocks_for(words_, kFlatBlock), kFlatBlock>>>(out_.data(), words_);
    } else {
      launch_all<false>();
    }
  }

  template <bool kCount>
  void launch_all() {
    const unsigned grid = bench::blocks_for(options_.parents, kParentBlock);
    if (options_.words != 0) {
      auto* const kernel = options_.threads == 1    ? &launch_striding<1, kCount>
                           : options_.threads == 32 ? &launch_striding<32, kCount>
                                                    : &launch_striding<128, kCount>;
      kernel<<<grid, kParentBlock>>>(out_.data(), static_cast<int>(options_.children),
                                     static_cast<int>(options_.blocks), static_cast<int>(options_.words),
                                     lost_.data());
      return;
    }
    auto* const kernel = options_.threads == 1    ? &launch<1, kCount>
                         : options_.threads == 32 ? &launch<32, kCount>
                                                  : &launch<128, kCount>;
    kernel<<<grid, kParentBlock>>>(out_.data(), static_cast<int>(options_.parents),
                                   static_cast<int>(options_.children), static_cast<int>(options_.blocks),
                                   lost_.data());
  }

  MicroOptions options_;
  bool flat_;
  long long words_;
  bench::DeviceArray<int> out_;
  bench::DeviceArray<unsigned long long> first_mistake_;
  bench::DeviceArray<unsigned long long> lost_;
  unsigned long long* read_ = nullptr;
};

void require_valid(MicroOptions& options) {
  if (options.parents == 0) options.parents = options.children > 0 ? options.children : 1;
  const long long each = std::max(options.words, options.blocks * options.threads);
  const bool fits = options.children <= options.parents && options.parents <= INT_MAX &&
                    each <= INT_MAX / 2 && options.children * each <= (1LL << 32);
  if (fits) return;
  std::fprintf(stderr,
               "micro: --children must not be over --parents, nor all their threads or words over 2^32\n");
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  MicroOptions micro;
  std::string threads = "1";
  bench::Options options("micro", "what recording and running a child costs that does next to nothing");
  options.integer("parents", micro.parents, 0, "threads of the parent (0: as many as children)");
  options.integer("children", micro.children, 0, "of these so many launch a child");
  options.integer("blocks", micro.blocks, 1, "blocks of a child");
  options.choice("threads", threads, {"1", "32", "128"}, "threads of a block");
  options.integer("words", micro.words, 0,
                  "words of a child, stored in a grid-stride loop (0: one a thread)");
  options.integer("rounds", micro.rounds, 1, "kernels, one after another");
  options.flag("reads", micro.reads, "the host reads a number after each");
  common.add_to(options);
  options.parse(argc, argv);
  micro.threads = std::stoll(threads);
  require_valid(micro);
  bench::require_device("micro");
  Micro benchmark(micro, common);
  return bench::run_benchmark("micro", common, benchmark);
}
