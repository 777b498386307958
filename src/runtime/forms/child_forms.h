// Chooses for each launch of a parent between its flat variant and the one whose children run in blocks
// (form_choice.h), by looking at what earlier launches recorded.
//
// The first bytes of the flat queues hold the numbers of all children and of all their threads, and where the
// first few hundred children begin (queue_look.h). Their idle lanes in last blocks are taken for the mean of
// all. One launch in ten is looked at.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/forms/form_choice.h"
#include "runtime/forms/queue_look.h"
#include "runtime/queues/launch_context.h"
#include "runtime/stats.h"

namespace klap::runtime {

// The sizes in the copy of a queue's first bytes, which begin at `head`. Nothing if it cannot be read.
std::optional<SizesSeen> sizes_in(std::span<const unsigned char> copy, CUdeviceptr head,
                                  uint32_t block_threads);

class ChildForms {
 public:
  using Next = FormChoice::Next;
  ChildForms(const jit::Variant& flat, const jit::Variant& in_blocks);
  ChildForms(const ChildForms&) = delete;
  ChildForms& operator=(const ChildForms&) = delete;

  [[nodiscard]] uint64_t operations() const { return look_.operations(); }

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
  void look(const jit::Variant& flat, const LaunchContext& launch) noexcept {
    look_.look(mutex_, flat, launch);
  }

  // A flat queue of the variant.
  struct Queue {
    size_t index = 0;
    uint32_t block_threads = 0;  // of the children's blocks
  };

 private:
  std::optional<SizesSeen> collect();

  FormCounts& counts_;
  const std::vector<Queue> queues_;
  std::mutex mutex_;
  FormChoice choice_;
  QueueLook look_;
};

}  // namespace klap::runtime
