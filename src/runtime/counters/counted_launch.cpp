#include "runtime/counters/counted_launch.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/counters/range_profiler.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/error.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

constexpr uint64_t kMostLaunches = 64;  // of a parent

void check_driver(const char* function, CUresult result) {
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::Driver, std::string(function) + ": " + error_name(result));
}

// The current CUDA context, 0 where there is none.
uint64_t current_context() {
  unsigned long long id = 0;
  return driver()->ctx_get_id(nullptr, &id) == CUDA_SUCCESS ? id : 0;
}

// Counts launches in the CUDA context in which it is made. All of it throws Error.
class LaunchCounter {
 public:
  LaunchCounter();

  // Whether a launch of the parent in the current context is to be counted.
  [[nodiscard]] bool wants(const std::string& parent) const;
  void begin(const std::string& parent);
  void end(const std::string& parent);
  void give_up();

 private:
  [[nodiscard]] uint64_t launches(const std::string& parent) const;
  [[nodiscard]] const MetricGroup& group(const std::string& parent) const {
    return *groups_[launches(parent) % groups_.size()];
  }
  void begin_anew(const std::string& parent);

  const Cupti& cupti_;
  CUcontext context_ = nullptr;
  const uint64_t context_id_ = current_context();
  MetricGroups groups_;
  std::map<std::string, uint64_t> launches_;  // that were counted, by parent
  std::unique_ptr<RangeProfiler> profiler_;
  bool is_used_ = false;       // the profiler has counted a launch
  bool one_for_each_ = false;  // no profiler counts a second launch on this machine
};

LaunchCounter::LaunchCounter() : cupti_(Cupti::get()) {
  CUdevice device = 0;
  check_driver("cuCtxGetCurrent", driver()->ctx_get_current(&context_));
  check_driver("cuCtxGetDevice", driver()->ctx_get_device(&device));
  std::vector<std::string> problems;
  const Chip chip = chip_of(cupti_, context_, device);
  profiler_ = std::make_unique<RangeProfiler>(cupti_, context_);  // the first that needs the right to count
  groups_ = metric_groups(cupti_, chip, config().counters, problems);
  for (const std::string& problem : problems) {
    log().warn("KLAP_COUNTERS: {}", problem);
    Stats::instance().counting_failed(problem);
  }
  if (groups_.empty()) throw Error(ErrorCode::Driver, "no metric is left").fix("ask for other metrics");
}

uint64_t LaunchCounter::launches(const std::string& parent) const {
  const auto found = launches_.find(parent);
  return found == launches_.end() ? 0 : found->second;
}

bool LaunchCounter::wants(const std::string& parent) const {
  return launches(parent) < kMostLaunches && current_context() == context_id_;
}

void LaunchCounter::begin_anew(const std::string& parent) {
  if (is_used_) give_up();
  if (!profiler_) profiler_ = std::make_unique<RangeProfiler>(cupti_, context_);
  profiler_->begin(group(parent));
}

void LaunchCounter::give_up() {
  profiler_.reset();
  is_used_ = false;
}

void LaunchCounter::begin(const std::string& parent) {
  check_driver("cuCtxSynchronize", driver()->ctx_synchronize());
  if (!is_used_ || one_for_each_) return begin_anew(parent);
  try {
    profiler_->begin(group(parent));
  } catch (const Error& error) {
    log().debug("KLAP_COUNTERS: each launch gets a profiler of its own: {}", error.what());
    one_for_each_ = true;
    begin_anew(parent);
  }
}

void LaunchCounter::end(const std::string& parent) {
  check_driver("cuCtxSynchronize", driver()->ctx_synchronize());
  const MetricGroup& counted = group(parent);
  std::vector<double> values;
  try {
    values = profiler_->end(counted);
  } catch (const Error& error) {
    if (!is_used_) throw;
    log().debug("KLAP_COUNTERS: each launch gets a profiler of its own: {}", error.what());
    one_for_each_ = true;
    return;
  }
  is_used_ = true;
  ++launches_[parent];
  std::map<std::string, double> named;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) named[counted.metrics()[i]] = values[i];
  Stats::instance().launch_counted(parent, named);
}

struct Counting {
  std::mutex mutex;  // guards what follows
  std::unique_ptr<LaunchCounter> counter;
  bool is_over = false;
};

Counting& counting() {
  // Leaked on purpose: CUPTI may be gone when static objects are destroyed.
  static auto* const all = new Counting;
  return *all;
}

// The caller holds the mutex, and launches whatever happens here.
template <class Work>
void count_or_end(const Work& work) noexcept {
  const bool is_done = try_or_report("KLAP_COUNTERS", "no more launches are counted", [&] {
    const RelaxedCapture relaxed;
    try {
      work(counting());
    } catch (const std::exception& error) {
      Stats::instance().counting_failed(error.what());
      throw;
    }
  });
  if (is_done) return;
  counting().is_over = true;
  counting().counter.reset();
}

}  // namespace

CountedLaunch::CountedLaunch(const std::string& parent) : parent_(parent) {
  if (config().counters.empty()) return;
  std::unique_lock lock(counting().mutex, std::try_to_lock);
  if (!lock || counting().is_over) return;
  count_or_end([&](Counting& all) {
    if (!all.counter) all.counter = std::make_unique<LaunchCounter>();
    if (!all.counter->wants(parent)) return;
    all.counter->begin(parent);
    counting_ = std::move(lock);
  });
}

void CountedLaunch::complete() noexcept {
  if (!counting_) return;
  count_or_end([this](Counting& all) { all.counter->end(parent_); });
  counting_.unlock();
}

CountedLaunch::~CountedLaunch() {
  if (counting_) counting().counter->give_up();
}

}  // namespace klap::runtime
