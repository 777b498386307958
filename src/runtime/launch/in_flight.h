// How many operations of klap_jit's own wait in the driver's queues.
//
// A driver's queue has about 1,024 entries, and a launch into a full one blocks its thread until the device
// has taken one. A program may have put almost as many launches behind a kernel that waits for the host,
// whose next step then opens the way. It must not block earlier than it does natively. A parent and its
// consumer are one operation more than the program asked for, so those are counted until they are known to be
// done, in all streams of a CUDA context together, since streams may share a queue. Beyond kMost a launch
// waits for older ones while the device makes progress, which it then does natively too, and otherwise runs
// as it is. So a program that has up to 1,024 - kMost operations of its own in a queue is not blocked.
//
// An event in the stream marks every few operations; nothing is asked of the driver before kMost is reached.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace klap::runtime {

class InFlight {
 public:
  static constexpr uint64_t kMost = 128;
  // A stream has no more operations than that which no event marks.
  static constexpr uint64_t kUnmarked = 32;

  [[nodiscard]] bool has_room(uint64_t operations) const {
    return operations <= kMost && total_.load(std::memory_order_relaxed) <= kMost - operations;
  }
  void add(uint64_t operations) { total_.fetch_add(operations, std::memory_order_relaxed); }
  void complete(uint64_t operations);
  // Behind so many operations in `stream` that are not marked. False where the driver has no event. Throws
  // only before there is anything in the stream.
  bool mark(CUstream stream, uint64_t operations);
  // Asks for the marks.
  void settle();
  // Calls `has_room` until it is true or patience is at an end. No patience is left where nothing has been
  // completed since it last was.
  bool wait_until(const std::function<bool()>& has_room);

 private:
  struct Mark {
    CUevent event = nullptr;
    uint64_t operations = 0;
  };
  // One that is not in use, nothing where the driver has no event.
  std::list<Mark> take_mark();

  // Long enough for most kernels. A program whose kernels do wait for the host loses it once, and then less.
  static constexpr std::chrono::microseconds kMostPatience = std::chrono::milliseconds(500);
  static constexpr std::chrono::microseconds kLeastPatience = std::chrono::milliseconds(1);

  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> progress_{0};
  std::mutex mutex_;
  // Lists, so that a mark goes from one to the other without an allocation that could fail half-way.
  std::list<Mark> marks_, unused_;
  uint64_t stuck_at_ = ~uint64_t{0};
  std::chrono::microseconds patience_ = kMostPatience;
};

}  // namespace klap::runtime
