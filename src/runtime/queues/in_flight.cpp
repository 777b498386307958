#include "runtime/queues/in_flight.h"

#include <algorithm>
#include <thread>

#include "runtime/driver.h"
#include "runtime/queues/block_pool.h"

namespace klap::runtime {

void InFlight::complete(uint64_t operations) {
  if (operations == 0) return;
  total_.fetch_sub(operations, std::memory_order_relaxed);
  progress_.fetch_add(1, std::memory_order_relaxed);
}

std::list<InFlight::Mark> InFlight::take_mark() {
  std::list<Mark> taken;
  const std::lock_guard lock(mutex_);
  if (!unused_.empty()) {
    taken.splice(taken.end(), unused_, unused_.begin());
    return taken;
  }
  taken.emplace_back();
  taken.front().event = new_event();
  if (!taken.front().event) taken.clear();
  return taken;
}

bool InFlight::mark(CUstream stream, uint64_t operations) {
  const RelaxedCapture relaxed;
  std::list<Mark> taken = take_mark();
  if (taken.empty()) return false;
  Mark& mark = taken.front();
  if (driver()->event_record(mark.event, stream) != CUDA_SUCCESS) {
    driver()->event_destroy(mark.event);
    return false;
  }
  add(1);
  mark.operations = operations + 1;
  const std::lock_guard lock(mutex_);
  marks_.splice(marks_.end(), taken);
  return true;
}

void InFlight::settle() {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  for (auto mark = marks_.begin(); mark != marks_.end();) {
    const auto next = std::next(mark);
    if (driver()->event_query(mark->event) == CUDA_SUCCESS) {
      complete(mark->operations);
      unused_.splice(unused_.end(), marks_, mark);
    }
    mark = next;
  }
}

bool InFlight::wait_until(const std::function<bool()>& has_room) {
  constexpr std::chrono::microseconds kPause(20);
  std::chrono::microseconds patience{};
  {
    const std::lock_guard lock(mutex_);
    if (progress_.load(std::memory_order_relaxed) == stuck_at_) return false;
    patience = patience_;
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!has_room()) {
    if (std::chrono::steady_clock::now() >= until) {
      const std::lock_guard lock(mutex_);
      stuck_at_ = progress_.load(std::memory_order_relaxed);
      patience_ = std::max(patience_ / 4, kLeastPatience);
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  const std::lock_guard lock(mutex_);
  patience_ = std::min(patience_ * 2, kMostPatience);
  return true;
}

}  // namespace klap::runtime
