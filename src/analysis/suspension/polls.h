// Places where a kernel looks again and again for what its children write.
//
// Such a loop is a wait for children that does not say so. CUDA never promised that it ends: the child may
// need the place that the block holds. A kernel that stops there, as at a wait, lets its children run.
#pragma once

#include <vector>

#include "analysis/facts/flow_facts.h"
#include "ptx/tree.h"

namespace klap::analysis {

// Instructions of the function, in text order, by which its loops may stay for other threads (waiting.h).
// No loop by which the function may wait comes round without one of these. There are none for a function
// whose branches are not all known.
std::vector<const ptx::Statement*> find_polls(const FlowFacts& function);

}  // namespace klap::analysis
