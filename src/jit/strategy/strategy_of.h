// Chooses the strategy of a site. This is the only place that tells strategies apart by how a site is
// aggregated.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& strategy_of(const PlannedSite& site);

// The strategy for sites that are aggregated this way. Promotion is decided before and is none of them.
const Strategy& strategy_of(const analysis::Aggregation& aggregation);

}  // namespace klap::jit
