// Which of a kernel's own variables its threads still use when they go on.
#pragma once

#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/graph/registers.h"
#include "analysis/suspension/own_addresses.h"
#include "analysis/suspension/suspension.h"

namespace klap::analysis {

// For each of these variables, whether some instruction that threads come to from a place to stop names it or
// a register with its address. Nothing else leads to a variable, since no address of one is in memory.
std::vector<bool> used_behind(const FlowFacts& kernel, const VirtualRegisters& registers,
                              const OwnAddresses& addresses, const std::vector<OwnVariable>& variables,
                              const std::vector<SuspensionPoint>& points);

}  // namespace klap::analysis
