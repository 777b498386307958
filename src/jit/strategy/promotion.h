// The strategy for a kernel of one block that launches itself: the whole chain of launches becomes one kernel
// of resident blocks (analysis/promotion/promotion.h). promotion_plan.h decides whether and how.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& promotion_strategy();

}  // namespace klap::jit
