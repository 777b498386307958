// Which of a parent's variants a launch may run.
//
// A variant may be right only for launches in certain blocks and grids, for those of several blocks, or where
// certain pointers lead to different allocations (jit::Variant). The host knows all of that at the launch.
#pragma once

#include <memory>

#include "runtime/parents/parent_kernel.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

bool is_made_for(ParentKernel& parent, const Launch& launch);

// The first of the parent's variants that is made for the launch; null if none is. One whose children run in
// blocks is made for the same launches as the one in front of it, which chooses.
ParentKernel* variant_for(const std::shared_ptr<ParentKernel>& first, const Launch& launch);

}  // namespace klap::runtime
