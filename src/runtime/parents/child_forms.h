// Chooses for each launch of a parent between its flat variant and the one whose children run in blocks
// (form_choice.h), by looking at what earlier launches recorded.
//
// A look copies the first bytes of the flat queues to the host, between the parent and its consumer. They
// hold the numbers of all children and of all their threads, and where the first few hundred children begin.
// Their idle lanes in last blocks are taken for the mean of all. The copy is read when it is done,
// at a later launch, so nobody waits for it. It takes some microseconds of one launch in ten. Whatever fails
// costs the look, and never a launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/parents/form_choice.h"
#include "runtime/queues/host_page.h"
#include "runtime/queues/launch_context.h"
#include "runtime/stats.h"

namespace klap::runtime {

// The sizes in the copy of a queue's first bytes, which begin at `head`. Nothing if it cannot be read.
std::optional<SizesSeen> sizes_in(std::span<const unsigned char> copy, CUdeviceptr head,
                                  uint32_t block_threads);

// A look's copy, and the event behind it, in one CUDA context.
struct LookPlace {
  uint64_t context_id = 0;
  HostPage page;
  CUevent done = nullptr;
};

class ChildForms {
 public:
  using Next = FormChoice::Next;
  ChildForms(const jit::Variant& flat, const jit::Variant& in_blocks);
  ~ChildForms();
  ChildForms(const ChildForms&) = delete;
  ChildForms& operator=(const ChildForms&) = delete;

  // A look puts so many operations into the stream, at most.
  [[nodiscard]] uint64_t operations() const { return queues_.size() + 1; }

  struct Change {
    bool to_blocks = false;
    double lanes_used = 0;  // which is why
  };
  struct Answer {
    Next next = Next::Flat;
    std::optional<Change> change;  // from this launch on
  };
  // How the next launch in that context is to be made.
  Answer next(uint64_t context_id);
  // Looks at what a flat parent, which is in the stream, recorded. The caller holds the context's mutex.
  void look(const jit::Variant& flat, const LaunchContext& launch) noexcept;

 private:
  // A flat queue of the variant.
  struct Queue {
    size_t index = 0;
    uint32_t block_threads = 0;  // of the children's blocks
  };
  // Makes the place one of that context. Success without a place means that no look is made this time.
  CUresult move_to(uint64_t context_id);
  CUresult enqueue_look(const jit::Variant& flat, const LaunchContext& launch);
  std::optional<SizesSeen> collect();
  [[nodiscard]] unsigned char* copy_of(size_t queue) const;
  [[nodiscard]] size_t bytes_of_each() const;

  FormCounts& counts_;
  std::vector<Queue> queues_;
  std::mutex mutex_;
  FormChoice choice_;
  std::optional<LookPlace> place_;
  uint32_t launches_elsewhere_ = 0;
  std::vector<CUdeviceptr> looked_at_;  // the queues whose copies are under way
  bool gave_up_ = false;
};

}  // namespace klap::runtime
