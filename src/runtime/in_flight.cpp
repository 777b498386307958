#include "runtime/in_flight.h"

#include <algorithm>
#include <thread>

#include "runtime/block_pool.h"
#include "runtime/driver.h"

namespace klap::runtime {

void InFlight::complete(uint64_t operations) {
  if (operations == 0) return;
  total_.fetch_sub(operations, std::memory_order_relaxed);
  progress_.fetch_add(1, std::memory_order_relaxed);
}

CUevent InFlight::take_event() {
  const std::lock_guard lock(mutex_);
  if (unused_.empty()) return new_event();
  const CUevent event = unused_.back();
  unused_.pop_back();
  return event;
}

bool InFlight::mark(CUstream stream, uint64_t operations) {
  const RelaxedCapture relaxed;
  const CUevent event = take_event();
  if (!event) return false;
  if (driver()->event_record(event, stream) != CUDA_SUCCESS) {
    driver()->event_destroy(event);
    return false;
  }
  add(1);
  const std::lock_guard lock(mutex_);
  marks_.push_back({event, operations + 1});
  return true;
}

void InFlight::settle() {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  std::erase_if(marks_, [this](const Mark& mark) {
    if (driver()->event_query(mark.event) != CUDA_SUCCESS) return false;
    complete(mark.operations);
    unused_.push_back(mark.event);
    return true;
  });
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
