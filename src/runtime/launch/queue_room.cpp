#include "runtime/launch/queue_room.h"

#include <algorithm>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/launch/guarded_launch.h"
#include "runtime/queues/queue_demand.h"

namespace klap::runtime {

namespace {

// The product of the extents and `times`, capped above the number that a queue can index.
uint64_t capped_product(const unsigned (&extents)[3], uint64_t times = 1) {
  constexpr uint64_t kTooMany = uint64_t{KLAP_MAX_RECORDS} + 1;
  for (const unsigned extent : extents) times = std::min(times * extent, kTooMany);  // 25 bits times 32 bits
  return times;
}

// True for extents that no driver takes; products of them could wrap.
bool is_too_large(const unsigned (&grid)[3]) {
  return grid[0] > 0x7fffffffu || grid[1] > 65535u || grid[2] > 65535u;
}

// Halves the slices while there is no memory for their queues.
Cut make_record_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context,
                     uint64_t pool_bytes) {
  const bool in_slices = parent.variant().in_slices && !is_too_large(launch.grid);
  const QueueDemand demand{capped_product(launch.block), &parent.variant()};
  uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  Cut cut{GridSlices(launch.grid, blocks)};
  if (!demand.fits(blocks, pool_bytes)) {
    cut.why = demand.can_be_indexed(blocks) ? &reasons::kQueueOverPoolBytes : &reasons::kTooManyThreads;
    blocks = in_slices ? demand.most_blocks(blocks, pool_bytes) : 0;
    if (blocks == 0) cut.no_room = cut.why;
    if (blocks == 0) return cut;
  }
  for (;; blocks = cut.slices.most_blocks() / 2) {
    cut.slices = GridSlices(launch.grid, blocks);
    cut.no_room = context.make_room(demand, cut.slices.most_blocks(), pool_bytes);
    if (!is_lack_of_memory(cut.no_room) || !in_slices || cut.slices.most_blocks() == 1) return cut;
    cut.why = cut.no_room;
  }
}

// A worklist has one size, however large the grid. The number of groups that share it depends on the grid,
// which is small enough to be counted if there are groups.
Cut make_work_queue_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context,
                         uint64_t pool_bytes) {
  const jit::Variant& variant = parent.variant();
  uint64_t groups = 0;
  if (variant.group_blocks != 0)
    groups = (capped_product(launch.grid) + variant.group_blocks - 1) / variant.group_blocks;
  Cut cut{GridSlices(launch.grid, ~uint64_t{0})};
  cut.no_room =
      context.make_work_queue_room(variant.queues.front().record_bytes, groups, pool_bytes, variant.buffer);
  const uint64_t room = context.work_queue_records() / std::max<uint64_t>(groups, 1);
  if (!cut.no_room && variant.may_refuse && room < pending_limit() + variant.kept_records)
    cut.no_room = &reasons::kQueueUnderLimit;
  return cut;
}

}  // namespace

uint64_t grid_threads(const Launch& launch) {
  return capped_product(launch.block, capped_product(launch.grid));
}

bool has_too_many_threads(const Launch& launch, const jit::Variant& variant) {
  if (variant.promoted) return false;
  const bool any_size =
      variant.queues.front().is_work_queue && variant.group_blocks == 0;  // overflow is provided for
  const bool may_cut = variant.in_slices && !is_too_large(launch.grid);
  return grid_threads(launch) > KLAP_MAX_RECORDS && !any_size && !may_cut;
}

Cut make_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context,
              std::optional<uint64_t> pool_bytes) {
  const bool is_work_queue = parent.variant().queues.front().is_work_queue;
  const auto make = is_work_queue ? make_work_queue_room : make_record_room;
  return make(launch, parent, context, pool_bytes.value_or(parent.pool_bytes()));
}

bool is_lack_of_memory(MaybeReason reason) {
  return reason == &reasons::kQueuesOverTotalBytes || reason == &reasons::kQueuesOverShare ||
         reason == &reasons::kNoDeviceMemory;
}

}  // namespace klap::runtime
