// Room in the queues for what a launch may record.
//
// A queue of records grows with the parent's grid. Where it cannot grow so far, the launch is cut into slices
// (slices.h). A work queue has one size, however large the grid.
#pragma once

#include <cstdint>

#include "runtime/launch/slices.h"
#include "runtime/launch_reasons.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/program_launch.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// The threads of the grid, which is the most records it can leave; capped above the number that a queue can
// index.
uint64_t grid_threads(const Launch& launch);

// True if more can be recorded at once than a queue can index, and the launch cannot be made smaller.
bool has_too_many_threads(const Launch& launch, const jit::Variant& variant);

// A launch cut into slices for which the queues have room. It is one slice if there is room for all of it.
struct Cut {
  GridSlices slices;
  MaybeReason why = nullptr;      // there is more than one
  MaybeReason no_room = nullptr;  // not even for the smallest one
};

// Makes room in the queues of `context`, whose mutex the caller holds. No queue takes more than the parent's
// pool_bytes.
Cut make_room(const Launch& launch, const ParentKernel& parent, LaunchContext& context);

// True if another queue could have had the room.
bool is_lack_of_memory(MaybeReason reason);

}  // namespace klap::runtime
