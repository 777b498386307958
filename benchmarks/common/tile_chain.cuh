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

constexpr long long kMediumElements = 25LL * kTile;
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

class TileChain : public Benchmark {
 public:
  TileChain(int elements, const CommonOptions& options)
      : elements_(elements), variant_(options.variant), words_(tiles_for(elements)), lost_(1) {}
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
      run_chain(false, nullptr);
    }
    check(cudaGetLastError(), "launching the kernels");
  }

  long long count_lost_launches() final {
    run_chain(true, lost_.data());
    check(cudaGetLastError(), "launching the chain");
    return static_cast<long long>(lost_.to_host()[0]);
  }

  void describe(JsonObject& report) const final {
    report.add("elements", elements_).add("links", tiles());
    describe_problem(report);
    report.add("child_launches", variant_ == "cdp" ? tiles() - 1 : 0);  // the host launches the first link
    report.add("bytes_to_move", bytes_to_move());
  }

 protected:
  // Brings the device's data to its state before a run.
  virtual void restore() = 0;
  // Launches the chain's first link; `count` chooses the kernel that counts failed launches.
  virtual void run_chain(bool count, unsigned long long* lost) = 0;
  virtual void run_flat(const TileWords& words) = 0;
  // The library's algorithm; with no memory, it only says how many bytes it needs.
  virtual cudaError_t library(void* memory, size_t& bytes) = 0;
  virtual void describe_problem(JsonObject& report) const = 0;
  [[nodiscard]] virtual long long bytes_to_move() const = 0;

  [[nodiscard]] int elements() const { return elements_; }
  [[nodiscard]] int tiles() const { return tiles_for(elements_); }
  [[nodiscard]] bool is_library() const { return variant_ == "library"; }
  // Allocates the library's working memory; the last step of a problem's constructor.
  void prepare_library() {
    if (!is_library()) return;
    check(library(nullptr, library_bytes_), "asking for the library's working memory");
    check(cudaMalloc(&library_memory_, library_bytes_ == 0 ? 1 : library_bytes_), "cudaMalloc");
  }

 private:
  int elements_;
  std::string variant_;
  TileWordsMemory words_;
  DeviceArray<unsigned long long> lost_;
  void* library_memory_ = nullptr;
  size_t library_bytes_ = 0;
};

}  // namespace bench
