// The strategy that needs no legality of order: the executor runs all launches of the parent and of its
// children as CUDA's device-side streams would (templates/executor/executor.cu).
//
// The other strategies run children together, so their order must not matter, or must be simple. They are
// faster. This one takes what they refuse: launches behind whole subtrees, tail launches in recursion, blocks
// that differ from launch to launch.
#pragma once

#include <vector>

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& executor_strategy();

// Whether the kernels of all sites, and all that these launch, can be bodies of the executor: they must stand
// in one unit, among other things (analysis/legality/recursion.h). The sites' aggregation must say that they
// are executed. `conditions`: launches may lose their order on conditions on the host's launch of the parent.
analysis::RecursiveGroupVerdict judge_executed(const Plan& plan, const std::vector<PlannedSite>& sites,
                                               bool conditions);

// Whether the parameters of the executed site's parent decide how many launches it leads to. Then the guard
// tries the program's own kernel, too (analysis/counts/fixed_launches.h).
bool has_fixed_launches(const PlannedSite& site);

// Gives each of the parent's sites the executor of their group, seen from there, for the target `sm`.
void set_executor_shapes(std::vector<PlannedSite>& sites, uint32_t sm);

}  // namespace klap::jit
