// Measures one step of the shapes that launches from kernels take: a chain, a loop, a fork, a tree.
//
// - `chain`: a kernel of one thread launches itself into the tail stream, as many times as there are steps.
// - `loop`: one thread launches that many kernels into its NULL stream.
// - `fork`: each thread of a block launches a kernel beside the others, and one of them a kernel into the
//   tail stream that runs when all have ended.
// - `tree`: a kernel launches itself twice, as the Fibonacci numbers are computed, down to as many leaves as
//   the Fibonacci number of `--steps`.
//
// A step does next to nothing: it stores a word. Those of a chain and of a loop read what the step before
// them has stored, so that a step out of order makes the result wrong.
//
// `--variant flat` stores all words by one kernel.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kFlatBlock = 256;
constexpr int kMostThreads = 1024;

// Every shape leaves the numbers from 1 on in `words`.

template <bool kCount>
__global__ void chain(int* words, int step, int steps, unsigned long long* lost) {
  words[step] = step == 0 ? 1 : words[step - 1] + 1;
  if (step + 1 == steps) return;
  chain<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(words, step + 1, steps, lost);
  bench::count_if_lost<kCount>(lost);
}

__global__ void store_next(int* words, int step) { words[step] = step == 0 ? 1 : words[step - 1] + 1; }

template <bool kCount>
__global__ void loop(int* words, int steps, unsigned long long* lost) {
  for (int step = 0; step < steps; ++step) {
    store_next<<<1, 1>>>(words, step);
    bench::count_if_lost<kCount>(lost);
  }
}

// The last word counts the others.
__global__ void store_and_count(int* words, int step, int steps) {
  words[step] = step + 1;
  atomicAdd(words + steps, 1);
}

// Joins the fork: what it stores is right only if all others are counted.
__global__ void store_last(int* words, int steps) { words[steps] = words[steps] + 1; }

template <bool kCount>
__global__ void __launch_bounds__(kMostThreads) fork(int* words, unsigned long long* lost) {
  const int step = static_cast<int>(threadIdx.x);
  const int steps = static_cast<int>(blockDim.x);
  store_and_count<<<1, 1, 0, cudaStreamFireAndForget>>>(words, step, steps);
  bench::count_if_lost<kCount>(lost);
  if (step != 0) return;
  store_last<<<1, 1, 0, cudaStreamTailLaunch>>>(words, steps);
  bench::count_if_lost<kCount>(lost);
}

__host__ __device__ constexpr int fibonacci(int n) {
  int number = 1;
  int next = 1;
  for (; n > 1; --n) {
    const int sum = number + next;
    number = next;
    next = sum;
  }
  return next;
}

template <bool kCount>
__global__ void tree(int* words, int first, int n, unsigned long long* lost) {
  if (n < 2) {
    words[first] = first + 1;
    return;
  }
  tree<kCount><<<1, 1, 0, cudaStreamFireAndForget>>>(words, first, n - 1, lost);
  bench::count_if_lost<kCount>(lost);
  tree<kCount><<<1, 1, 0, cudaStreamFireAndForget>>>(words, first + fibonacci(n - 1), n - 2, lost);
  bench::count_if_lost<kCount>(lost);
}

__global__ void store_all(int* words, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) words[i] = i + 1;
}

namespace {

enum class Shape { kChain, kLoop, kFork, kTree };

struct LatencyOptions {
  Shape shape = Shape::kChain;
  int steps = 0;
  // Words that are stored.
  [[nodiscard]] int words() const {
    if (shape == Shape::kFork) return steps + 1;
    return shape == Shape::kTree ? fibonacci(steps) : steps;
  }
  // Each leaf of a tree but the first one comes with a node that launches two others.
  [[nodiscard]] long long launches() const {
    if (shape == Shape::kChain) return steps - 1;
    if (shape == Shape::kTree) return 2LL * (words() - 1);
    return words();
  }
};

std::vector<int> numbers_up_to(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

class Latency final : public bench::ArrayProgram<int> {
 public:
  Latency(const LatencyOptions& options, const bench::CommonOptions& common)
      : ArrayProgram(common, "words", std::vector<int>(static_cast<size_t>(options.words())),
                     numbers_up_to(options.words())),
        options_(options) {}

 private:
  void launch(bool count) override {
    const int steps = options_.steps;
    switch (options_.shape) {
      case Shape::kChain:
        (count ? chain<true> : chain<false>)<<<1, 1>>>(data(), 0, steps, lost());
        break;
      case Shape::kLoop:
        (count ? loop<true> : loop<false>)<<<1, 1>>>(data(), steps, lost());
        break;
      case Shape::kFork:
        (count ? fork<true> : fork<false>)<<<1, static_cast<unsigned>(steps)>>>(data(), lost());
        break;
      case Shape::kTree:
        (count ? tree<true> : tree<false>)<<<1, 1>>>(data(), 0, steps, lost());
        break;
    }
  }
  void launch_flat() override {
    store_all<<<bench::blocks_for(options_.words(), kFlatBlock), kFlatBlock>>>(data(), options_.words());
  }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("steps", static_cast<long long>(options_.steps));
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {
        .child_launches = options_.launches(), .bytes_to_move = 4LL * options_.words(), .flat_kernels = 1};
  }

  LatencyOptions options_;
};

LatencyOptions checked(const std::string& shape, long long steps) {
  LatencyOptions options;
  options.shape = shape == "chain"  ? Shape::kChain
                  : shape == "loop" ? Shape::kLoop
                  : shape == "fork" ? Shape::kFork
                                    : Shape::kTree;
  constexpr long long kMostSteps = 1000000;
  constexpr long long kMostOfTree = 30;
  const bool is_fork = options.shape == Shape::kFork;
  const bool is_tree = options.shape == Shape::kTree;
  bench::require_at_most("latency", "steps", steps,
                         is_fork   ? kMostThreads
                         : is_tree ? kMostOfTree
                                   : kMostSteps);
  options.steps = static_cast<int>(steps);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  std::string shape = "chain";
  long long steps = 1000;
  bench::Options options("latency", "what one launch costs in a chain, a loop, a fork or a tree of launches");
  options.choice("shape", shape, {"chain", "loop", "fork", "tree"}, "how launches follow each other");
  options.integer("steps", steps, 1, "links, children, or the Fibonacci number of the tree's leaves");
  common.add_to(options);
  options.parse(argc, argv);
  const LatencyOptions latency = checked(shape, steps);
  bench::require_device("latency");
  Latency program(latency, common);
  return bench::run_benchmark("latency", common, program);
}
