// What the promotion programs' host sides share.
//
// These are sequential algorithms over tiles of a long sequence. With dynamic parallelism they are written as
// a recursion: a single-block kernel does one tile and launches itself for the next one, a link of a chain.
// The KLAP paper turns such chains into one kernel whose blocks pass the argument on ("promotion"); its input
// sizes are chains of 2, 25 and 3,073 links.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda_check.h"
#include "harness.h"
#include "lookback.cuh"
#include "random.h"
#include "tile.cuh"

namespace bench {

constexpr long long kMediumElements = 25LL * kTile<16>;
constexpr long long kMostElements = 1LL << 30;  // so that sums of indices fit 31 bits

[[noreturn]] inline void refuse_option(const char* program, const char* what) {
  std::fprintf(stderr, "%s: %s\n", program, what);
  std::exit(2);
}

constexpr int kValueRange = 1 << 30;

// Elements in [0, kValueRange).
inline std::vector<int> random_values(long long count, uint64_t seed) {
  Random random(seed);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random.next() % kValueRange);
  return values;
}

// What all of these programs can be asked for.
struct ChainOptions {
  std::string per_thread = "16";
  std::string boundary = "none";

  void add_to(Options& options) {
    options.choice("per-thread", per_thread, {"16", "1"}, "elements a thread: tiles of 8,192 or 512");
    options.choice("boundary", boundary, {"none", "hand"},
                   "whether the chain's kernel says where it needs the links before");
  }
  [[nodiscard]] bool is_marked() const { return boundary == "hand"; }
};

// Measures Program<16> or Program<1>, made of the arguments.
template <template <int> class Program, class... Arguments>
int run_chain_benchmark(const char* name, const CommonOptions& common, const ChainOptions& chain,
                        const Arguments&... arguments) {
  if (chain.per_thread == "1") {
    Program<1> program(arguments..., chain, common);
    return run_benchmark(name, common, program);
  }
  Program<16> program(arguments..., chain, common);
  return run_benchmark(name, common, program);
}

// Tiles have kPerThread elements a thread.
template <int kPerThread>
class TileChain : public Benchmark {
 public:
  TileChain(int elements, const ChainOptions& chain, const CommonOptions& options)
      : elements_(elements),
        variant_(options.variant),
        is_marked_(chain.is_marked()),
        words_(tiles_for<kPerThread>(elements)),
        lost_(1) {}
  ~TileChain() override { cudaFree(library_memory_); }
  TileChain(const TileChain&) = delete;
  TileChain& operator=(const TileChain&) = delete;

  void reset() final {
    lost_.fill_bytes(0);
    restore();
  }

  void run() final {
    if (variant_ == "flat") {
      run_flat(words_.cleared());
    } else if (variant_ == "library") {
      check(library(library_memory_, library_bytes_), "the library's algorithm");
    } else {
      run_chain(is_marked_ ? Link::Marked : Link::Plain, nullptr);
    }
    check(cudaGetLastError(), "launching the kernels");
  }

  long long count_lost_launches() final {
    run_chain(Link::Counting, lost_.data());
    check(cudaGetLastError(), "launching the chain");
    return static_cast<long long>(lost_.to_host()[0]);
  }

  void describe(JsonObject& report) const final {
    report.add("elements", elements_).add("links", tiles()).add("per_thread", kPerThread);
    describe_problem(report);
    report.add("child_launches", variant_ == "cdp" ? tiles() - 1 : 0);  // the host launches the first link
    report.add("bytes_to_move", bytes_to_move());
  }

  [[nodiscard]] std::optional<HostWork> host_work() const final {
    if (is_library()) return std::nullopt;
    if (variant_ == "flat") return HostWork{.kernels = 1, .fills = 1};
    return HostWork{.kernels = 1, .parents = 1};
  }

 protected:
  // Brings the device's data to its state before a run.
  virtual void restore() = 0;
  // Launches the chain's first link, of a kernel of that kind.
  virtual void run_chain(Link kind, unsigned long long* lost) = 0;
  virtual void run_flat(const TileWords& words) = 0;
  // The library's algorithm; with no memory, it only says how many bytes it needs.
  virtual cudaError_t library(void* memory, size_t& bytes) = 0;
  virtual void describe_problem(JsonObject& report) const = 0;
  [[nodiscard]] virtual long long bytes_to_move() const = 0;

  [[nodiscard]] int elements() const { return elements_; }
  [[nodiscard]] int tiles() const { return tiles_for<kPerThread>(elements_); }
  [[nodiscard]] bool is_library() const { return variant_ == "library"; }
  template <class Kernel>
  static Kernel* chosen(Link kind, Kernel* plain, Kernel* counting, Kernel* marked) {
    return kind == Link::Counting ? counting : kind == Link::Marked ? marked : plain;
  }
  // Allocates the library's working memory; the last step of a problem's constructor.
  void prepare_library() {
    if (!is_library()) return;
    check(library(nullptr, library_bytes_), "asking for the library's working memory");
    check(cudaMalloc(&library_memory_, library_bytes_ == 0 ? 1 : library_bytes_), "cudaMalloc");
  }

 private:
  int elements_;
  std::string variant_;
  bool is_marked_;
  TileWordsMemory words_;
  DeviceArray<unsigned long long> lost_;
  void* library_memory_ = nullptr;
  size_t library_bytes_ = 0;
};

}  // namespace bench
