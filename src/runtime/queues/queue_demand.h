// This file tells how large a parent's queues must be for so many of its blocks. A launch that finds no room
// for all of its blocks is cut by these numbers (launch/slices.h).
#pragma once

#include <cstdint>

#include "jit/data/variant.h"
#include "runtime/queues/queue_shape.h"

namespace klap::runtime {

// A parent's launch, as far as its queues need to know it.
struct QueueDemand {
  uint64_t block_threads = 0;
  const jit::Variant* variant = nullptr;

  // The shape that a queue must have for so many blocks of the parent.
  [[nodiscard]] QueueShape shape(const jit::ChildQueue& queue, uint64_t blocks) const;
  // True if a queue can index the records of so many blocks.
  [[nodiscard]] bool can_be_indexed(uint64_t blocks) const;
  // True if it can index them and no queue needs more than `pool_bytes`.
  [[nodiscard]] bool fits(uint64_t blocks, uint64_t pool_bytes) const;
  // The largest number of blocks, up to `blocks`, that fits; 0 if not one does.
  [[nodiscard]] uint64_t most_blocks(uint64_t blocks, uint64_t pool_bytes) const;
};

}  // namespace klap::runtime
