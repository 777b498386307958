// The strategy for launches in loops, and for launches whose order is kept: all launches of the parent share
// one queue, in which each record names the one before it (analysis/legality/loop_launches.h).
#pragma once

#include <optional>
#include <vector>

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& loop_launches_strategy();

// The first rejection to one queue for all sites, each of which was found right by itself. Where there is
// none, the sites get the shape of their common consumer.
std::optional<analysis::Rejection> judge_loop_launches(const Plan& plan, std::vector<PlannedSite>& sites);

}  // namespace klap::jit
