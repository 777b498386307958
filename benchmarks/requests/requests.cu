// Requests for items, many of them for the same: the first thread of a block that asks for an item launches
// its work.
//
// The threads of a block enter their items into a hash table in shared memory, by compare and swap from place
// to place until one is free or has the item. So each of them waits in a loop for what others of its block
// write, but never for a child. The thread that has entered an item launches a kernel that adds up all of the
// item's values.
//
// `--variant flat` has a warp for each request that looks whether an earlier one of its block is for the same
// item.
#include <cstdint>
#include <set>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 256;
constexpr int kPlaces = 512;  // a power of two
constexpr int kFree = -1;
constexpr int kChildBlock = 64;
constexpr int kWarp = 32;

struct Items {
  const int* first;  // where each item's values begin
  const int* values;
  int* sums;
};

// Adds every step-th value of the item from one on.
__device__ void add_values(const Items& items, int item, int from, int step) {
  int sum = 0;
  for (int i = items.first[item] + from; i < items.first[item + 1]; i += step) sum += items.values[i];
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (from % kWarp == 0) atomicAdd(&items.sums[item], sum);
}

__global__ void __launch_bounds__(kChildBlock) add_up(Items items, int item) {
  add_values(items, item, static_cast<int>(threadIdx.x), kChildBlock);
}

// Whether no other thread has entered the item before.
__device__ bool enter(int* places, int item) {
  unsigned at = static_cast<unsigned>(item) * 2654435769U % kPlaces;
  for (;;) {
    const int found = atomicCAS(&places[at], kFree, item);
    if (found == kFree) return true;
    if (found == item) return false;
    at = (at + 1) % kPlaces;
  }
}

template <bool kCount>
__global__ void __launch_bounds__(kBlock)
    serve(Items items, const int* requests, int count, unsigned long long* lost) {
  __shared__ int places[kPlaces];
  for (int i = static_cast<int>(threadIdx.x); i < kPlaces; i += kBlock) places[i] = kFree;
  __syncthreads();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count && enter(places, requests[i])) {
    add_up<<<1, kChildBlock>>>(items, requests[i]);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void serve_flat(Items items, const int* requests, int count) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int i = thread / kWarp;
  const int lane = thread % kWarp;
  if (i >= count) return;
  bool is_known = false;
  for (int other = i / kBlock * kBlock + lane; other < i; other += kWarp)
    is_known = is_known || requests[other] == requests[i];
  if (!__any_sync(0xffffffff, is_known)) add_values(items, requests[i], lane, kWarp);
}

namespace {

struct Sizes {
  long long requests = 10240;
  long long items = 4096;
  long long largest = 200;
};

struct Problem {
  std::vector<int> first = {0};
  std::vector<int> values;
  std::vector<int> requests;
};

// Small numbers are asked for more often: the product of two random ones.
Problem random_problem(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Problem problem;
  for (long long item = 0; item < sizes.items; ++item) {
    const uint32_t count = 1 + random.below(static_cast<uint32_t>(sizes.largest));
    for (uint32_t i = 0; i < count; ++i) problem.values.push_back(static_cast<int>(random.below(1000)));
    problem.first.push_back(static_cast<int>(problem.values.size()));
  }
  for (long long i = 0; i < sizes.requests; ++i)
    problem.requests.push_back(static_cast<int>(random.uniform() * random.uniform() * sizes.items));
  return problem;
}

class Requests final : public bench::StreamProgram {
 public:
  Requests(const Problem& problem, const bench::CommonOptions& options)
      : StreamProgram(options),
        first_(problem.first),
        values_(problem.values),
        requests_(problem.requests),
        sums_(problem.first.size() - 1),
        expected_(problem.first.size() - 1),
        count_(static_cast<int>(problem.requests.size())) {
    for (int begin = 0; begin < count_; begin += kBlock) serve_on_cpu(problem, begin);
  }

  [[nodiscard]] std::string verify() override {
    return bench::differences("sums", expected_, sums_.to_host());
  }

 private:
  // The requests of one block.
  void serve_on_cpu(const Problem& problem, int begin) {
    std::set<int> items;
    for (int i = begin; i < begin + kBlock && i < count_; ++i) items.insert(problem.requests[i]);
    launches_ += static_cast<long long>(items.size());
    for (const int item : items) {
      for (int i = problem.first[item]; i < problem.first[item + 1]; ++i)
        expected_[item] += problem.values[i];
      values_read_ += problem.first[item + 1] - problem.first[item];
    }
  }

  [[nodiscard]] Items items() const { return {first_.data(), values_.data(), sums_.data()}; }

  void restore() override { sums_.fill_bytes(0); }
  void launch(bool count) override {
    (count ? serve<true> : serve<false>)<<<bench::blocks_for(count_, kBlock), kBlock>>>(
        items(), requests_.data(), count_, lost());
  }
  void launch_flat() override {
    const long long threads = static_cast<long long>(count_) * kWarp;
    serve_flat<<<bench::blocks_for(threads, kBlock), kBlock>>>(items(), requests_.data(), count_);
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("requests", count_).add("items", static_cast<long long>(expected_.size()));
    report.add("values_read", values_read_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const long long item_bytes = 12LL * static_cast<long long>(expected_.size());
    return {.child_launches = launches_,
            .bytes_to_move = static_cast<long long>(values_.bytes()) + item_bytes + 4LL * count_,
            .flat_kernels = 1};
  }

  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> values_;
  bench::DeviceArray<int> requests_;
  bench::DeviceArray<int> sums_;
  std::vector<int> expected_;
  int count_;
  long long launches_ = 0;
  long long values_read_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("requests",
                         "requests for items, with a launch by the first thread of a block for an item");
  options.integer("requests", sizes.requests, 1, "requests, 256 to a block");
  options.integer("items", sizes.items, 1, "items that can be asked for");
  options.integer("largest", sizes.largest, 1, "the most values of an item");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("requests", "requests", sizes.requests, 1 << 24);
  bench::require_at_most("requests", "items", sizes.items, 1 << 20);
  bench::require_at_most("requests", "largest", sizes.largest, 1 << 10);
  bench::require_device("requests");
  Requests program(random_problem(sizes, common.seed), common);
  return bench::run_benchmark("requests", common, program);
}
