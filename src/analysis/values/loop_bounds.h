// The greatest number of times a thread can run weighted blocks of a function.
//
// A loop is bounded if it has a counter: a register that is set to a constant before the loop and changed by
// one addition of a constant in it. A branch must compare it with a constant, leave the loop, and stand on
// every way around. Every other loop is unbounded.
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
