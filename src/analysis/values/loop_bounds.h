// The greatest number of times a thread can run weighted blocks of a function.
//
// A loop is bounded where a counter is easily seen: a register that is set to a constant before the loop,
// changed by one addition of a constant in it, and compared with a constant by a branch that leaves the loop
// and stands on every way around. Everything else is unbounded.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"

namespace klap::analysis {

constexpr uint64_t kUnboundedRuns = ~uint64_t{0};

// The sum of the weights on the heaviest path; `weights` has an entry for each basic block. Zero weights cost
// nothing, whatever loop they stand in.
uint64_t most_runs(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data,
                   const std::vector<uint32_t>& weights);

}  // namespace klap::analysis
