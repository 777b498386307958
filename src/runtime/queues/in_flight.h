// This file counts the operations that klap_jit itself has in the driver's queues.
//
// A driver's queue has about 1,024 entries, and a launch into a full one blocks its thread until the device
// has taken one. A program may have put almost as many launches behind a kernel that waits for the host,
// whose next step then opens the way. It must not block earlier than it does natively. A parent and its
// consumer are one operation more than the program asked for. So such operations are counted until they are
// known to be done. All streams of a CUDA context count together, since they may share a queue. Beyond kMost
// a launch waits for older ones while the device makes progress, as it then does natively, too. Otherwise the
// original runs. So a program that has up to 1,024 - kMost operations of its own in a queue is not blocked.
//
// An event in the stream marks every few operations. The driver is asked nothing before kMost is reached, and
// then about these events and the launch's own stream. It must not be asked about other streams: their
// threads may begin to capture at any moment, and the question would end the capture.
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
  // At about so many operations that no event marks, in all streams together, a launch marks those of its
  // stream.
  static constexpr uint64_t kUnmarked = 32;

  [[nodiscard]] bool has_room(uint64_t operations) const {
    return operations <= kMost && total_.load(std::memory_order_relaxed) <= kMost - operations;
  }
  void add(uint64_t operations) { total_.fetch_add(operations, std::memory_order_relaxed); }
  // A stream has so many operations without a mark, where it had so many before. True if there are too many.
  bool set_unmarked(uint64_t before, uint64_t now) {
    return unmarked_.fetch_add(now - before, std::memory_order_relaxed) + now - before >= kUnmarked;
  }
  void complete(uint64_t operations);
  // Marks so many unmarked operations in `stream` by an event behind them. False if the driver has no event.
  // Throws only before there is anything in the stream.
  bool mark(CUstream stream, uint64_t operations);
  // Asks the driver which marks are done.
  void settle();
  // Calls `has_room` until it is true or the patience is used up. There is no patience if nothing has
  // completed since it was last used up.
  bool wait_until(const std::function<bool()>& has_room);

 private:
  struct Mark {
    CUevent event = nullptr;
    uint64_t operations = 0;
  };
  // A mark that is not in use; nothing if the driver has no event.
  std::list<Mark> take_mark();

  // Long enough for most kernels. If a program's kernels do wait for the host, the whole of it is lost once,
  // and less after that.
  static constexpr std::chrono::microseconds kMostPatience = std::chrono::milliseconds(500);
  static constexpr std::chrono::microseconds kLeastPatience = std::chrono::milliseconds(1);

  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> unmarked_{0};
  std::atomic<uint64_t> progress_{0};
  std::mutex mutex_;
  // Lists, so that a mark goes from one to the other without an allocation that could fail half-way.
  std::list<Mark> marks_, unused_;
  uint64_t stuck_at_ = ~uint64_t{0};
  std::chrono::microseconds patience_ = kMostPatience;
};

}  // namespace klap::runtime
