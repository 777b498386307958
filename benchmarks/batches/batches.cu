// The largest values of many arrays, in batches that the threads of a block take from a common list.
//
// A block has a list of arrays, and in shared memory the number of the next one. A thread that has nothing to
// do takes as many of the next arrays as make a batch, by compare and swap of that number, and launches a
// child for them: a block for each array. Then it comes back for more. So it repeats itself if other threads
// of its block were faster, but it never waits for a child.
//
// `--variant flat` has a block for each array.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kParentBlock = 32;
constexpr int kChildBlock = 64;
constexpr int kArraysPerParent = 256;
constexpr int kBatch = 1024;  // values, at most, unless a single array has more

struct Arrays {
  const int* first;  // where each array's values begin
  const int* values;
  int* largest;
  int count;
};

// The array behind the batch that begins with array `begin`.
__host__ __device__ inline int end_of_batch(const int* first, int begin, int end) {
  int i = begin;
  while (i < end && (i == begin || first[i + 1] - first[begin] <= kBatch)) ++i;
  return i;
}

__device__ void find_largest(const Arrays& arrays, int array) {
  __shared__ int largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  int own = 0;
  for (int i = arrays.first[array] + static_cast<int>(threadIdx.x); i < arrays.first[array + 1];
       i += kChildBlock)
    own = max(own, arrays.values[i]);
  atomicMax(&largest, own);
  __syncthreads();
  if (threadIdx.x == 0) arrays.largest[array] = largest;
}

// A block for each array of the batch.
__global__ void __launch_bounds__(kChildBlock) work_on_batch(Arrays arrays, int begin) {
  find_largest(arrays, begin + static_cast<int>(blockIdx.x));
}

struct Batch {
  int begin;
  int end;
};

// Takes the next batch before `end`; an empty one if nothing is left.
__device__ Batch take_batch(int* next, const int* first, int end) {
  int begin = atomicAdd(next, 0);
  while (begin < end) {
    const int batch_end = end_of_batch(first, begin, end);
    const int found = atomicCAS(next, begin, batch_end);
    if (found == begin) return {begin, batch_end};
    begin = found;
  }
  return {end, end};
}

template <bool kCount>
__global__ void __launch_bounds__(kParentBlock) hand_out(Arrays arrays, unsigned long long* lost) {
  __shared__ int next;
  const int begin = static_cast<int>(blockIdx.x) * kArraysPerParent;
  const int end = min(begin + kArraysPerParent, arrays.count);
  if (threadIdx.x == 0) next = begin;
  __syncthreads();
  for (;;) {
    const Batch batch = take_batch(&next, arrays.first, end);
    if (batch.begin == batch.end) return;
    work_on_batch<<<batch.end - batch.begin, kChildBlock>>>(arrays, batch.begin);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void __launch_bounds__(kChildBlock) find_flat(Arrays arrays) {
  find_largest(arrays, static_cast<int>(blockIdx.x));
}

namespace {

struct Sizes {
  long long arrays = 10000;
  long long largest = 500;
};

struct Problem {
  std::vector<int> first = {0};
  std::vector<int> values;
  std::vector<int> largest;
};

Problem random_problem(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Problem problem;
  for (long long i = 0; i < sizes.arrays; ++i) {
    const uint32_t count = 1 + random.below(static_cast<uint32_t>(sizes.largest));
    for (uint32_t k = 0; k < count; ++k) problem.values.push_back(static_cast<int>(random.below(1U << 30)));
    problem.largest.push_back(*std::max_element(problem.values.end() - count, problem.values.end()));
    problem.first.push_back(static_cast<int>(problem.values.size()));
  }
  return problem;
}

// Batches follow one another, whoever takes them.
long long batches_of(const Problem& problem) {
  const int count = static_cast<int>(problem.largest.size());
  long long batches = 0;
  for (int begin = 0; begin < count; begin += kArraysPerParent) {
    const int end = std::min(begin + kArraysPerParent, count);
    for (int i = begin; i < end; i = end_of_batch(problem.first.data(), i, end)) ++batches;
  }
  return batches;
}

class Batches final : public bench::StreamProgram {
 public:
  Batches(const Problem& problem, const bench::CommonOptions& options)
      : StreamProgram(options),
        first_(problem.first),
        values_(problem.values),
        largest_(problem.largest.size()),
        expected_(problem.largest),
        batches_(batches_of(problem)) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("largest values", expected_, largest_.to_host());
  }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(expected_.size()); }
  [[nodiscard]] Arrays arrays() const { return {first_.data(), values_.data(), largest_.data(), count()}; }

  void restore() override { largest_.fill_bytes(0); }
  void launch(bool count_lost) override {
    (count_lost
         ? hand_out<true>
         : hand_out<false>)<<<bench::blocks_for(count(), kArraysPerParent), kParentBlock>>>(arrays(), lost());
  }
  void launch_flat() override { find_flat<<<static_cast<unsigned>(count()), kChildBlock>>>(arrays()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("arrays", count()).add("values", static_cast<long long>(values_.bytes() / sizeof(int)));
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = batches_,
            .bytes_to_move = static_cast<long long>(values_.bytes()) + 8LL * count(),
            .flat_kernels = 1};
  }

  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> values_;
  bench::DeviceArray<int> largest_;
  std::vector<int> expected_;
  long long batches_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("batches",
                         "the largest values of arrays, in batches that threads take by compare and swap");
  options.integer("arrays", sizes.arrays, 1, "arrays");
  options.integer("largest", sizes.largest, 1, "the most values of an array");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("batches", "arrays", sizes.arrays, 1 << 20);
  bench::require_at_most("batches", "largest", sizes.largest, 1 << 10);
  bench::require_device("batches");
  Batches program(random_problem(sizes, common.seed), common);
  return bench::run_benchmark("batches", common, program);
}
