// A look at what a parent has recorded: the first bytes of its queues are copied to the host, between the
// parent and its consumer.
//
// The copy is read when it is done, at a later launch, so nobody waits for it. It takes some microseconds of
// the launch. Looks of one object are made in one CUDA context at a time, and one after another. Whatever
// fails costs the looks, and never a launch.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/queues/host_page.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

class QueueLook {
 public:
  // Copies of the queues with these numbers have so many bytes together. No look is made if that is more than
  // a page. `without` says what there is not without looks, for the log.
  QueueLook(std::vector<size_t> queues, size_t bytes, const char* without);
  ~QueueLook();
  QueueLook(const QueueLook&) = delete;
  QueueLook& operator=(const QueueLook&) = delete;

  // A look puts so many operations into the stream, at most.
  [[nodiscard]] uint64_t operations() const { return queues_.size() + 1; }
  // True if a look in that context was not read yet.
  [[nodiscard]] bool is_under_way(uint64_t context_id) const {
    return !heads_.empty() && place_->context_id == context_id;
  }
  // Looks at what a parent, which is in the stream, recorded. `mutex` guards this object. The variant must
  // live until the look is collected. The caller holds the context's mutex.
  void look(std::mutex& mutex, const jit::Variant& variant, const LaunchContext& launch) noexcept;

  struct Copy {
    std::span<const unsigned char> bytes;
    CUdeviceptr head = 0;                    // where they were
    const jit::ChildQueue* queue = nullptr;  // of the variant that was looked at
  };
  // The copies of a look that is under way, in the order of the queues; nothing if it is not done, or failed.
  std::optional<std::vector<Copy>> collect();

  // Pinned memory for copies, and the event behind them, in one CUDA context.
  struct Place {
    uint64_t context_id = 0;
    volatile unsigned char* bytes = nullptr;
    size_t size = 0;
    CUevent done = nullptr;
  };

 private:
  // Success without a look under way means that none is made this time.
  CUresult enqueue(const jit::Variant& variant, const LaunchContext& launch);
  // Makes the place one of that context.
  CUresult move_to(uint64_t context_id);
  [[nodiscard]] unsigned char* copy_of(size_t queue) const;

  const std::vector<size_t> queues_;
  const size_t bytes_of_each_;
  const char* const without_;
  bool gave_up_;
  std::optional<Place> place_;
  uint32_t launches_elsewhere_ = 0;
  std::vector<CUdeviceptr> heads_;           // of the queues whose copies are under way
  const jit::Variant* looked_at_ = nullptr;  // that filled them
};

// Gives back what looks took in a CUDA context that has ended.
void end_looks(uint64_t context_id);

}  // namespace klap::runtime
