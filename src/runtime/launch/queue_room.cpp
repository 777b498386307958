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
Cut make_record_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context) {
  const uint64_t pool_bytes = parent.pool_bytes();
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

// This is what a launch needs of a work queue. The number of groups that share it depends on the grid, which
// is small enough to be counted if there are groups.
struct WorkQueueDemand {
  uint64_t groups = 0;
  uint64_t records = 1;  // at least so many for each group
};
WorkQueueDemand demand_of(const Launch& launch, const jit::Variant& variant) {
  WorkQueueDemand demand;
  if (variant.group_blocks != 0)
    demand.groups = (capped_product(launch.grid) + variant.group_blocks - 1) / variant.group_blocks;
  if (variant.may_refuse) demand.records = pending_limit() + variant.kept_records;
  return demand;
}

constexpr uint64_t kLeastPart = uint64_t{1} << 20;

// True if the queue has the room that the launch needs in that part of pool_bytes.
bool is_enough(uint64_t bytes, const jit::Variant& variant, const LaunchContext& context,
               const WorkQueueDemand& demand) {
  const uint32_t record_bytes = variant.queues.front().record_bytes;
  const uint64_t records = context.work_queue_shape(record_bytes, demand.groups, bytes).records;
  return records / std::max<uint64_t>(demand.groups, 1) >= demand.records;
}

// The smallest part that is enough, or all of it.
uint64_t least_part(const ParentKernel& parent, const LaunchContext& context, const WorkQueueDemand& demand) {
  uint64_t bytes = parent.pool_bytes();
  while (bytes / 2 >= kLeastPart && is_enough(bytes / 2, parent.variant(), context, demand)) bytes /= 2;
  return bytes;
}

// The part that a queue takes if there is the memory: no more than a part of what is left, so that a few
// streams do not take what others need.
uint64_t fair_part(const ParentKernel& parent, LaunchContext& context, uint64_t least) {
  constexpr uint64_t kPart = 4;
  const uint64_t fair = context.memory_left() / kPart;
  uint64_t bytes = parent.pool_bytes();
  while (bytes / 2 >= least && WorkQueueShape::within(bytes, 1).bytes() > fair) bytes /= 2;
  return bytes;
}

MaybeReason take_part(uint64_t bytes, const ParentKernel& parent, LaunchContext& context,
                      const WorkQueueDemand& demand) {
  const jit::Variant& variant = parent.variant();
  const MaybeReason reason =
      context.make_work_queue_room(variant.queues.front().record_bytes, demand.groups, bytes, variant.buffer);
  if (reason) return reason;
  context.set_work_queue_part({parent.pool_bytes(), bytes});
  const uint64_t room = context.work_queue_records() / std::max<uint64_t>(demand.groups, 1);
  return variant.may_refuse && room < demand.records ? &reasons::kQueueUnderLimit : nullptr;
}

// A worklist has one size, however large the grid. It is smaller where memory is short, which does for most
// programs: launches that it has no room for are the program's own. Most launches find it as it was.
Cut make_work_queue_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context) {
  const WorkQueueDemand demand = demand_of(launch, parent.variant());
  Cut cut{GridSlices(launch.grid, ~uint64_t{0})};
  const auto last = context.work_queue_part();
  if (last && last->of == parent.pool_bytes() && is_enough(last->bytes, parent.variant(), context, demand)) {
    cut.no_room = take_part(last->bytes, parent, context, demand);
    if (!is_lack_of_memory(cut.no_room)) return cut;
  }
  const uint64_t least = least_part(parent, context, demand);
  for (uint64_t bytes = fair_part(parent, context, least);; bytes /= 2) {
    cut.no_room = take_part(bytes, parent, context, demand);
    if (!is_lack_of_memory(cut.no_room) || bytes / 2 < least) return cut;
  }
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

Cut make_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context) {
  if (parent.variant().queues.front().is_work_queue) return make_work_queue_room(launch, parent, context);
  return make_record_room(launch, parent, context);
}

bool is_lack_of_memory(MaybeReason reason) {
  return reason == &reasons::kQueuesOverTotalBytes || reason == &reasons::kQueuesOverShare ||
         reason == &reasons::kNoDeviceMemory;
}

}  // namespace klap::runtime
