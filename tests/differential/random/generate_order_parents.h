// The parents of random programs whose result depends on the order of launches: which threads launch, in
// which order, and which cells they tell their children to use.
#pragma once

#include "random/order_plan.h"

namespace klap::differential::random {

// Makes kernel `k`, which launches kernels behind it.
void make_ordered_parent(OrderPlan& plan, uint32_t k);

}  // namespace klap::differential::random
