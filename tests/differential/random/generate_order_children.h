// The children of random programs whose result depends on the order of launches: kernels that access common
// cells.
#pragma once

#include "random/order_plan.h"

namespace klap::differential::random {

// Makes kernel `k`: one that makes a single access if the program has one conflict, otherwise one of several.
void make_ordered_child(OrderPlan& plan, uint32_t k);

}  // namespace klap::differential::random
