// The strategy for launches that are aggregated over one block of the parent, or over several.
//
// It is that of the device's grid, but the last thread of each group launches what its group has recorded. So
// children can start before the parent has ended.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& groups_strategy();

}  // namespace klap::jit
