#include "runtime/launch/slices.h"

#include <algorithm>

namespace klap::runtime {

GridSlices::GridSlices(std::span<const unsigned, 3> grid, uint64_t most_blocks) {
  std::copy(grid.begin(), grid.end(), grid_);
  uint64_t below = 1;  // blocks of a slice of extent 1 on this axis
  for (size_t axis = 0; axis < 3; ++axis) {
    extent_[axis] = std::clamp<uint64_t>(most_blocks / below, 1, grid_[axis]);
    per_axis_[axis] = (grid_[axis] + extent_[axis] - 1) / extent_[axis];
    below *= grid_[axis];
  }
}

uint64_t GridSlices::most_blocks() const { return extent_[0] * extent_[1] * extent_[2]; }

GridSlices::Slice GridSlices::at(uint64_t number) const {
  Slice slice{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t first = number % per_axis_[axis] * extent_[axis];
    number /= per_axis_[axis];
    slice.place.first[axis] = static_cast<uint32_t>(first);
    slice.place.whole[axis] = static_cast<uint32_t>(grid_[axis]);
    slice.grid[axis] = static_cast<unsigned>(std::min(extent_[axis], grid_[axis] - first));
  }
  return slice;
}

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
