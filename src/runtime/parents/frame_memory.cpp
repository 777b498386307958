#include "runtime/parents/frame_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>

#include "ptx-patterns/templates/suspension/frame.h"
#include "runtime/driver.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/process.h"
#include "runtime/queues/host_page.h"
#include "runtime/queues/launch_context.h"
#include "runtime/stats.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// CUDA's default size of the heap.
constexpr size_t kDefault = size_t{8} << 20;

struct CountPages {
  std::mutex mutex;
  std::map<uint64_t, HostPage> of_context;
};

CountPages& count_pages() {
  // Leaked on purpose, as it is used while the process runs its exit handlers.
  static auto* const pages = new CountPages;
  return *pages;
}

// The context's page as kernels see it, made on first use; 0 if there is none.
CUdeviceptr page_of(uint64_t context_id) {
  CountPages& pages = count_pages();
  const std::lock_guard lock(pages.mutex);
  const auto [page, is_new] = pages.of_context.try_emplace(context_id);
  if (!is_new) return page->second.in_device;
  const CUresult result = map_host_page(page->second);
  if (result != CUDA_SUCCESS)
    log().warn("the memory of blocks that wait is not counted: there is no page for it ({})",
               error_name(result));
  return page->second.in_device;
}

}  // namespace

// The pool of queues takes up to an eighth of the free memory (block_pool.h), and no more than total_bytes.
size_t heap_for_frames(size_t free_bytes, uint64_t total_bytes) {
  constexpr uint64_t kMost = uint64_t{512} << 20, kShare = 16;
  return std::min({kMost, free_bytes / kShare, total_bytes / 2});
}

std::string widen_heap(uint64_t context_id) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const Driver& cuda = *driver();
  size_t now = 0, free = 0, total = 0;
  if (cuda.ctx_set_limit == nullptr || cuda.ctx_get_limit(&now, CU_LIMIT_MALLOC_HEAP_SIZE) != CUDA_SUCCESS ||
      cuda.mem_get_info(&free, &total) != CUDA_SUCCESS || now != kDefault)
    return "";
  const size_t wanted = heap_for_frames(free, config().total_bytes());
  const auto kept = [](std::string_view why) {
    return fmt::format("the device's heap keeps its {} MB, for blocks that wait ({})", kDefault >> 20, why);
  };
  if (wanted <= now) return kept("more would be over half of what queues may take");
  const size_t more = wanted - now;
  BlockPool& pool = LaunchContexts::instance().in_context(context_id)->pool;
  if (const MaybeReason too_much = pool.reserve(more)) return kept(too_much->name);
  const CUresult result = cuda.ctx_set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, wanted);
  if (result == CUDA_SUCCESS)
    return fmt::format("the device's heap has {} MB, for blocks that wait", wanted >> 20);
  pool.unreserve(more);
  return kept(error_name(result));
}

void count_frames(const ParentKernel& parent, const LaunchContext& launch) {
  if (config().stats_file.empty()) return;
  const CUdeviceptr variable = parent.variable(KLAP_FRAME_COUNTS_NAME).first;
  const CUdeviceptr page = variable == 0 ? 0 : page_of(launch.context().id);
  if (page == 0) return;
  const CUresult result = driver()->memcpy_htod_async(variable, &page, sizeof page, launch.stream());
  if (result != CUDA_SUCCESS)
    log().warn("the memory of blocks that wait is not counted: its variable is not set ({})",
               error_name(result));
}

void add_frames_to_statistics() {
  const std::lock_guard lock(count_pages().mutex);
  FrameCounts sum;
  for (const auto& [context_id, page] : count_pages().of_context) {
    if (page.in_device == 0) continue;
    sum.bytes_taken += page.words[KLAP_FRAME_BYTES_TAKEN];
    sum.bytes_returned += page.words[KLAP_FRAME_BYTES_RETURNED];
    sum.refused += page.words[KLAP_FRAME_REFUSED];
    sum.is_counted = true;
  }
  Stats::instance().frames_found(sum);
}

}  // namespace klap::runtime
