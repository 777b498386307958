// The strategy for recursion: one persistent consumer works off a queue, to which its children add.
//
// Children that launch have no place in the other strategies, which run all children before anything else
// begins. Here the kernels that can be launched, directly or by each other, become bodies of one consumer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& worklist_strategy();

// Whether the kernels of all sites, and all that these launch, can be bodies of one consumer: they must stand
// in one unit, among other things (analysis/legality/recursion.h). `conditions` concerns the executor alone.
analysis::RecursiveGroupVerdict judge_worklist(const Plan& plan, const std::vector<PlannedSite>& sites,
                                               bool conditions = false);

// The site's child as a kernel of the recursive group.
const analysis::GroupKernel& kernel_of(const PlannedSite& site);

// The block of such a kernel as a consumer's body has it. An extent that is not constant is kInheritedExtent.
std::array<uint32_t, 3> body_block(const analysis::GroupKernel& kernel);

// The consumer of a recursive group, seen from one of the parent's sites.
transform::ConsumerShape worklist_shape(const std::vector<PlannedSite>& sites, const PlannedSite& site);

}  // namespace klap::jit
