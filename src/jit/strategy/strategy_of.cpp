#include "jit/strategy/strategy_of.h"

#include "jit/strategy/device_grid.h"
#include "jit/strategy/executor.h"
#include "jit/strategy/fused_grid.h"
#include "jit/strategy/groups.h"
#include "jit/strategy/host_grid.h"
#include "jit/strategy/loop_launches.h"
#include "jit/strategy/promotion.h"
#include "jit/strategy/warp.h"
#include "jit/strategy/worklist.h"

namespace klap::jit {

const Strategy& strategy_of(const analysis::Aggregation& aggregation) {
  if (aggregation.is_immediate()) return warp_strategy();
  if (aggregation.is_executed) return executor_strategy();
  if (aggregation.is_recursive) return worklist_strategy();
  if (aggregation.has_loop_queue) return loop_launches_strategy();
  if (aggregation.group_blocks != 0) return groups_strategy();
  return aggregation.launcher == Launcher::Device ? device_grid_strategy() : host_grid_strategy();
}

const Strategy& strategy_of(const PlannedSite& site) {
  if (site.promotion != nullptr) return promotion_strategy();
  return site.fused ? fused_grid_strategy() : strategy_of(site.aggregation);
}

}  // namespace klap::jit
