#include "runtime/sizes/child_sizes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ptx-patterns/kernels/child_sizes.h"
#include "runtime/driver.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "runtime/queues/host_page.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/embedded_file.h"
#include "support/log.h"

namespace klap::runtime {

extern const EmbeddedFile kKernelFiles[];

namespace {

constexpr char kKernel[] = "klap_count_sizes";

// A row of KLAP_SIZE_BINS words in a page, for the children of one queue.
using Row = HostPage;

// A CUDA context has this for counting.
struct Counter {
  CUfunction kernel = nullptr;
  Row next;  // rows that are not used yet
  size_t rows_left = 0;
};

class ChildSizes {
 public:
  static ChildSizes& instance() {
    static auto& sizes = *new ChildSizes;  // never destroyed: exit handlers use it
    return sizes;
  }

  void prepare(const LaunchContext& launch) {
    const std::lock_guard lock(mutex_);
    counter_in(launch);
  }

  void count(const jit::Variant& variant, const LaunchContext& launch) {
    const std::lock_guard lock(mutex_);
    Counter& counter = counter_in(launch);
    for (size_t i = 0; i < variant.queues.size(); ++i) {
      const jit::ChildQueue& queue = variant.queues[i];
      if (queue.counted.empty() || counter.kernel == nullptr) continue;
      const Row row = row_of({launch.context().id, variant.parent, queue.child, queue.counted}, counter);
      if (row.words == nullptr) continue;
      CUdeviceptr head = queue_of(variant, i, launch), words = row.in_device;
      void* params[] = {&head, &words};
      const CUresult result =
          driver()->launch_kernel(counter.kernel, std::max(1u, launch.context().multiprocessors), 1, 1,
                                  KLAP_SIZES_THREADS, 1, 1, 0, launch.stream(), params, nullptr);
      if (result != CUDA_SUCCESS) give_up(result);
    }
  }

  void add_to_statistics() {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, row] : rows_) {
      const auto& [context, parent, child, counted] = key;
      std::vector<uint64_t> sizes(row.words, row.words + KLAP_SIZE_BINS);
      Stats::instance().sizes_found(parent, child, counted, sizes);
    }
    rows_.clear();
  }

 private:
  using Key = std::tuple<uint64_t, std::string, std::string, std::string>;  // context, parent, child, unit

  Counter& counter_in(const LaunchContext& launch) {
    const auto [found, is_new] = counters_.try_emplace(launch.context().id);
    Counter& counter = found->second;
    if (!is_new) return counter;
    const RelaxedCapture relaxed;
    CUmodule module = nullptr;
    CUresult result = driver()->module_load_data(&module, count_sizes_ptx().c_str());
    if (result == CUDA_SUCCESS) result = driver()->module_get_function(&counter.kernel, module, kKernel);
    if (result == CUDA_SUCCESS) result = map(counter);
    if (result != CUDA_SUCCESS) {
      counter.kernel = nullptr;
      give_up(result);
    }
    return counter;
  }

  static CUresult map(Counter& counter) {
    const CUresult result = map_host_page(counter.next);
    if (result == CUDA_SUCCESS) counter.rows_left = host_page_bytes() / (KLAP_SIZE_BINS * sizeof(uint64_t));
    return result;
  }

  Row row_of(const Key& key, Counter& counter) {
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second;
    if (counter.rows_left == 0) {
      if (!std::exchange(said_, true)) log().warn("KLAP_SIZES: there is no room for more kinds of children");
      return {};
    }
    const Row row = counter.next;
    --counter.rows_left;
    counter.next.words += KLAP_SIZE_BINS;
    counter.next.in_device += KLAP_SIZE_BINS * sizeof(uint64_t);
    return rows_[key] = row;
  }

  void give_up(CUresult result) {
    if (!std::exchange(said_, true))
      log().warn("KLAP_SIZES: sizes are missing in the statistics ({})", error_name(result));
  }

  std::mutex mutex_;
  std::map<uint64_t, Counter> counters_;  // by CUDA context
  std::map<Key, Row> rows_;
  bool said_ = false;
};

}  // namespace

// nvcc writes its own version of PTX. Of the older ones, which older drivers need, 8.3 has all that the
// kernel uses.
std::string count_sizes_ptx() {
  std::string text = kKernelFiles[0].text;
  const size_t version = text.find(".version");
  return text.replace(version, text.find('\n', version) - version, ".version 8.3");
}

void prepare_to_count_sizes(const LaunchContext& launch) noexcept {
  if (!config().sizes) return;
  try_or_report("KLAP_SIZES", "sizes are missing in the statistics",
                [&] { ChildSizes::instance().prepare(launch); });
}

void count_sizes(const jit::Variant& variant, const LaunchContext& launch) noexcept {
  if (!config().sizes) return;
  try_or_report("KLAP_SIZES", "sizes are missing in the statistics",
                [&] { ChildSizes::instance().count(variant, launch); });
}

void add_sizes_to_statistics() { ChildSizes::instance().add_to_statistics(); }

}  // namespace klap::runtime
