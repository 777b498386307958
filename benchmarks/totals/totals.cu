// Running totals of many accounts, and the total of each, by CUB's scan and reduction, which a kernel calls.
//
// A block of one thread for each account calls cub::DeviceScan::InclusiveSum() for the running totals, and
// cub::DeviceReduce::Sum() for the total. These functions are code of the kernel itself: they ask for the
// device, its multiprocessors, how many blocks fit on one, and for errors, and launch CUB's kernels into the
// block's NULL stream. The blocks of the scan's second kernel look back at what those before them have found.
//
// `--variant flat` has a block for each account, which does both.
#include <algorithm>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kFlatBlock = 256;
constexpr int kOneTile = 4096;  // CUB's reduction of so many values is one launch

// Accounts one after another, with equally many values. Each has its own temporary storage.
struct Accounts {
  const int* values;
  int* running;
  int* totals;
  unsigned char* storage;
  size_t storage_bytes;
  int length;

  [[nodiscard]] __device__ const int* values_of(unsigned account) const {
    return values + static_cast<size_t>(account) * length;
  }
  [[nodiscard]] __device__ int* running_of(unsigned account) const {
    return running + static_cast<size_t>(account) * length;
  }
};

// CUB says itself whether the device runtime has refused something.
__global__ void add_up(Accounts accounts, unsigned long long* lost) {
  const unsigned account = blockIdx.x;
  unsigned char* const storage = accounts.storage + account * accounts.storage_bytes;
  const int* const values = accounts.values_of(account);
  size_t bytes = accounts.storage_bytes;
  if (cub::DeviceScan::InclusiveSum(storage, bytes, values, accounts.running_of(account), accounts.length) !=
      cudaSuccess)
    atomicAdd(lost, 1ULL);
  if (cub::DeviceReduce::Sum(storage, bytes, values, accounts.totals + account, accounts.length) !=
      cudaSuccess)
    atomicAdd(lost, 1ULL);
}

// Tile by tile, each from the total of those before it.
__global__ void __launch_bounds__(kFlatBlock) add_up_flat(Accounts accounts) {
  __shared__ int sums[kFlatBlock];
  const int thread = static_cast<int>(threadIdx.x);
  int total = 0;
  for (int begin = 0; begin < accounts.length; begin += kFlatBlock) {
    const int i = begin + thread;
    sums[thread] = i < accounts.length ? accounts.values_of(blockIdx.x)[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < kFlatBlock; distance *= 2) {
      const int before = thread >= distance ? sums[thread - distance] : 0;
      __syncthreads();
      sums[thread] += before;
      __syncthreads();
    }
    if (i < accounts.length) accounts.running_of(blockIdx.x)[i] = total + sums[thread];
    total += sums[kFlatBlock - 1];
    __syncthreads();
  }
  if (thread == 0) accounts.totals[blockIdx.x] = total;
}

namespace {

struct Sizes {
  long long accounts = 200;
  long long length = 10000;
};

std::vector<int> random_values(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> values(static_cast<size_t>(sizes.accounts * sizes.length));
  for (int& value : values) value = static_cast<int>(random.below(2001)) - 1000;
  return values;
}

// The bytes that both functions need, as they say themselves.
size_t storage_bytes_for(int length) {
  size_t for_scan = 0;
  size_t for_reduction = 0;
  int* const none = nullptr;
  bench::check(cub::DeviceScan::InclusiveSum(nullptr, for_scan, none, none, length), "asking CUB");
  bench::check(cub::DeviceReduce::Sum(nullptr, for_reduction, none, none, length), "asking CUB");
  constexpr size_t kAlignment = 256;
  return (std::max(for_scan, for_reduction) + kAlignment - 1) / kAlignment * kAlignment;
}

class Totals final : public bench::StreamProgram {
 public:
  Totals(const Sizes& sizes, const std::vector<int>& values, const bench::CommonOptions& options)
      : StreamProgram(options),
        sizes_(sizes),
        storage_bytes_(storage_bytes_for(static_cast<int>(sizes.length))),
        values_(values),
        running_(values.size()),
        totals_(static_cast<size_t>(sizes.accounts)),
        storage_(storage_bytes_ * static_cast<size_t>(sizes.accounts)) {
    int total = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto length = static_cast<size_t>(sizes.length);
      total = (i % length == 0 ? 0 : total) + values[i];
      expected_running_.push_back(total);
      if (i % length == length - 1) expected_totals_.push_back(total);
    }
  }

  [[nodiscard]] std::string verify() override {
    const std::string mistake = bench::differences("running totals", expected_running_, running_.to_host());
    return mistake.empty() ? bench::differences("totals", expected_totals_, totals_.to_host()) : mistake;
  }

 private:
  [[nodiscard]] Accounts accounts() const {
    return {values_.data(),  running_.data(), totals_.data(),
            storage_.data(), storage_bytes_,  static_cast<int>(sizes_.length)};
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(sizes_.accounts); }

  void restore() override {
    running_.fill_bytes(0x55);
    totals_.fill_bytes(0x55);
  }
  void launch(bool /*count*/) override { add_up<<<blocks(), 1>>>(accounts(), lost()); }
  void launch_flat() override { add_up_flat<<<blocks(), kFlatBlock>>>(accounts()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("accounts", sizes_.accounts).add("length", sizes_.length);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const long long for_reduction = sizes_.length <= kOneTile ? 1 : 2;
    return {.child_launches = sizes_.accounts * (2 + for_reduction),
            .bytes_to_move = 8 * sizes_.accounts * sizes_.length,
            .flat_kernels = 1};
  }

  Sizes sizes_;
  size_t storage_bytes_;
  bench::DeviceArray<int> values_;
  bench::DeviceArray<int> running_;
  bench::DeviceArray<int> totals_;
  bench::DeviceArray<unsigned char> storage_;
  std::vector<int> expected_running_;
  std::vector<int> expected_totals_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("totals", "running totals of accounts, by CUB's functions called in a kernel");
  options.integer("accounts", sizes.accounts, 1, "accounts");
  options.integer("length", sizes.length, 1, "values of each");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("totals", "accounts", sizes.accounts, 65535);
  bench::require_at_most("totals", "length", sizes.length, 1 << 24);
  bench::require_device("totals");
  Totals program(sizes, random_values(sizes, common.seed), common);
  return bench::run_benchmark("totals", common, program);
}
