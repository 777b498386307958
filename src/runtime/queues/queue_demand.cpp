#include "runtime/queues/queue_demand.h"

#include <algorithm>

namespace klap::runtime {

QueueShape QueueDemand::shape(const jit::ChildQueue& queue, uint64_t blocks) const {
  const uint32_t group = variant->group_blocks;
  const uint64_t groups = group == 0 ? 0 : (blocks + group - 1) / group;
  return {blocks * block_threads, QueueShape::aligned_record(queue.record_bytes), groups};
}

bool QueueDemand::can_be_indexed(uint64_t blocks) const {
  return block_threads <= KLAP_MAX_RECORDS && blocks <= KLAP_MAX_RECORDS / block_threads;
}

bool QueueDemand::fits(uint64_t blocks, uint64_t pool_bytes) const {
  if (!can_be_indexed(blocks)) return false;
  return std::ranges::all_of(variant->queues, [&](const jit::ChildQueue& queue) {
    return shape(queue, blocks).bytes() <= pool_bytes;
  });
}

uint64_t QueueDemand::most_blocks(uint64_t blocks, uint64_t pool_bytes) const {
  if (fits(blocks, pool_bytes)) return blocks;
  uint64_t some = 0, too_many = blocks;
  while (too_many - some > 1) {
    const uint64_t middle = some + (too_many - some) / 2;
    (fits(middle, pool_bytes) ? some : too_many) = middle;
  }
  return some;
}

}  // namespace klap::runtime
