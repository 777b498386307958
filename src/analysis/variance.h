// Which values differ between the launches of one block, and whether children update memory that they share.
//
// Launches of one block into its NULL stream run one after another. Deferred children overlap. That is
// harmless as long as no two of them update the same memory by a plain load and store; this analysis finds
// the updates that it cannot show to be apart. What sets children apart are the arguments that differ between
// launches: indices inside the child do not, since every child has the same ones.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/legality.h"

namespace klap::analysis {

// Byte ranges {offset, bytes} of the child's parameter block whose values differ between threads of the
// parent's block: those that depend on the thread's index, but neither show to be uniform in a warp or block
// nor to be the same for groups of threads (`threadIdx.x / 2`, a choice between two pointers).
using ParameterRanges = std::vector<std::pair<uint32_t, uint32_t>>;
ParameterRanges varying_parameters(const FunctionFacts& parent, const Site& site, const ptx::Function& child);

// A plain read-modify-write, in the child or in what it calls, at an address that does not depend on a
// varying argument: one sentence with its place. Nothing if there is none.
std::optional<std::string> shared_update(const ptx::Module& module, const ptx::Function& child,
                                         const CallClosure& closure, const ParameterRanges& varying);

}  // namespace klap::analysis
