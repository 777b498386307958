// Whether a kernel that goes on where it stopped can stop once more.
#pragma once

#include "analysis/facts/flow_facts.h"
#include "analysis/suspension/suspension.h"

namespace klap::analysis {

// False only if no way leads from a place where a thread may stand to a wait. A thread that meets others at a
// barrier stops only where one of them waits, so barriers do not count.
bool stops_again(const FlowFacts& kernel, const Suspension& suspension);

}  // namespace klap::analysis
