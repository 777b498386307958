// The strategy for launches that the host aggregates over the parent's grid.
//
// Threads of the parent record their launches. Directly behind the parent the host launches a consumer for
// each site, which runs all recorded children with several of them in each of its blocks. It is the best
// strategy where it is legal, and the one that most optimisations are made for.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& host_grid_strategy();

}  // namespace klap::jit
