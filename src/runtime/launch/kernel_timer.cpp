#include "runtime/launch/kernel_timer.h"

#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/driver.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "runtime/stats.h"
#include "support/boundary.h"

namespace klap::runtime {

namespace {

struct Pending {
  uint64_t context_id = 0;
  std::string parent;
  bool counts = true;
  CUevent before = nullptr;
  CUevent between = nullptr;
  CUevent after = nullptr;
};

struct PendingLaunches {
  std::mutex mutex;
  std::vector<Pending> launches;
  // Times of a context count from its first timed launch, whose event stays for that until the context ends.
  std::map<uint64_t, CUevent> origins;
};

PendingLaunches& pending() {
  // Leaked on purpose, as the statistics are: launches may come while the process runs its exit handlers.
  static auto* const launches = new PendingLaunches;
  return *launches;
}

void destroy(CUevent event) {
  if (event) driver()->event_destroy(event);
}

void count(Pending& launch, std::map<uint64_t, CUevent>& origins) {
  float parent_ms = 0, consumer_ms = 0, begin_ms = 0;
  if (driver()->event_elapsed_time(&parent_ms, launch.before, launch.between) != CUDA_SUCCESS ||
      driver()->event_elapsed_time(&consumer_ms, launch.between, launch.after) != CUDA_SUCCESS)
    return;
  const auto [origin, is_first] = origins.try_emplace(launch.context_id, launch.before);
  if (is_first) {
    launch.before = nullptr;
  } else if (driver()->event_elapsed_time(&begin_ms, origin->second, launch.before) != CUDA_SUCCESS) {
    return;
  }
  Stats::instance().launch_timed(
      {launch.parent, launch.context_id, begin_ms, parent_ms, consumer_ms, !launch.counts});
}

// The current CUDA context, 0 where there is none.
uint64_t current_context() {
  unsigned long long id = 0;
  return driver()->ctx_get_id(nullptr, &id) == CUDA_SUCCESS ? id : 0;
}

}  // namespace

void collect_timed_launches() noexcept try {
  PendingLaunches& all = pending();
  const std::lock_guard lock(all.mutex);
  if (all.launches.empty()) return;
  const uint64_t context_id = current_context();
  std::erase_if(all.launches, [&all, context_id](Pending& launch) {
    // The driver cannot be asked about events of a context that may be gone; context ids are never given out
    // again.
    if (launch.context_id != context_id) return false;
    const CUresult state = driver()->event_query(launch.after);
    if (state == CUDA_ERROR_NOT_READY) return false;
    if (state == CUDA_SUCCESS) count(launch, all.origins);
    for (const CUevent event : {launch.before, launch.between, launch.after}) destroy(event);
    return true;
  });
} catch (const std::exception& error) {
  report_failure("KLAP_TIMING", "some launches are missing in the GPU times", error.what());
}

TimedLaunch::TimedLaunch(const std::string& parent, CUstream stream, bool counts)
    : parent_(parent), stream_(stream), counts_(counts), timed_(config().timing) {
  if (!timed_) return;
  const RelaxedCapture relaxed;
  collect_timed_launches();
  timed_ = record(before_);
}

bool TimedLaunch::record(CUevent& event) {
  return driver()->event_create(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
         driver()->event_record(event, stream_) == CUDA_SUCCESS;
}

void TimedLaunch::parent_enqueued() {
  if (!timed_) return;
  const RelaxedCapture relaxed;
  timed_ = record(between_);
}

void TimedLaunch::complete() {
  if (!timed_) return;
  const RelaxedCapture relaxed;
  if (!record(after_)) return;
  // Everything is enqueued, so a failure from here on must not make the program's own launch follow.
  try_or_report("KLAP_TIMING", "a launch is missing in the GPU times", [this] {
    PendingLaunches& all = pending();
    const std::lock_guard lock(all.mutex);
    all.launches.push_back({current_context(), parent_, counts_, before_, between_, after_});
    before_ = between_ = after_ = nullptr;
  });
}

TimedLaunch::~TimedLaunch() {
  for (const CUevent event : {before_, between_, after_}) destroy(event);
}

}  // namespace klap::runtime
