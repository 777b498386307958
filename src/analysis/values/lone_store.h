// This file finds code that at most one thread of a block can reach. Each thread that comes there has made a
// plain store to one address, and two such stores would be a race (warp_invariant_load.h has the argument).
#pragma once

#include <cstdint>

#include "analysis/values/values.h"

namespace klap::analysis {

// Whether every thread that runs an instruction has made such a store, so that at most one of a block runs
// it.
bool is_behind_lone_store(const Values& values, uint32_t instruction);

}  // namespace klap::analysis
