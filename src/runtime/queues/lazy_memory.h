// Device memory that comes with its first use, for queues whose size is a guess.
//
// Nobody knows how many children a recursion has, so its queue must be large, and nearly all of it stays
// empty. Most of such a queue lies in managed memory. Its addresses are given out at once, and a page of
// device memory comes when a kernel first touches it. Such a page is zero: the driver may show nobody what
// was there before.
//
// The driver brings 2 MB at a time. So the first part gets an advice of its own. The driver then splits the
// range there, and what is beside the border has pages of 64 KB. The first part is also fetched before the
// first launch, which then finds all that a small one needs.
//
// Atomics in such memory were measured to take 4 % longer than in ordinary memory (H100). So a queue has its
// counters and its first records in ordinary memory (work_queue_shape.h).
//
// A kernel that touches a new page needs free memory at that moment: if there is none, the driver ends the
// kernel. So this memory is given out only while the device has room for all of it in full. The program's own
// allocations are watched. Before one that could leave too little, the queues move to ordinary memory for
// good (LaunchContexts::before_allocation()). Other processes on the same device are not seen.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace klap::runtime {

// A block of lazy memory for a queue.
struct LazyShape {
  uint64_t addresses = 0;  // bytes of them
  uint64_t most_used = 0;  // at most so many bytes of these are ever used
  uint64_t first = 0;      // so many bytes at the beginning are what a small launch uses
};

// The lazy memory of one CUDA context, which is current whenever the driver is asked.
class LazyMemory {
 public:
  LazyMemory() = default;
  ~LazyMemory();
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  // True if the device has such memory for more queues. Once off, it stays off.
  [[nodiscard]] bool is_on();
  void turn_off();
  // True if queues that have such memory may use it in further launches.
  [[nodiscard]] bool may_be_kept() const { return state_.load(std::memory_order_relaxed) != State::Ended; }
  void end() { state_.store(State::Ended, std::memory_order_relaxed); }

  // New addresses; 0 if the driver has none, which turns this off.
  CUdeviceptr allocate(const LazyShape& shape);
  // Brings so many bytes to the device, for work that is enqueued from now on. False if the driver fails,
  // which turns this off.
  bool fetch(CUdeviceptr address, uint64_t bytes, CUstream stream);

  // Counts memory that a stream is about to have. False if the device has no room for it and for all that
  // streams have already, which turns this off.
  bool add(uint64_t bytes);
  void remove(uint64_t bytes);
  // True if little may be left for the kernels when the program has taken so many bytes more.
  bool is_short_without(uint64_t bytes);
  // False while no context has such memory in use. It spares programs without it any question.
  static bool is_used() { return users_.load(std::memory_order_relaxed) != 0; }

 private:
  enum class State : uint8_t { Unknown, On, Off, Ended };
  void fail(const char* what, CUresult result);

  static inline std::atomic<uint64_t> users_{0};  // blocks in use, in all contexts

  std::atomic<State> state_{State::Unknown};
  CUdevice device_ = 0;
  std::atomic<uint64_t> blocks_{0}, bytes_{0};  // in use
  // The program may take so many bytes more before the driver is asked again.
  std::atomic<int64_t> spare_{0};
};

}  // namespace klap::runtime
