// Waits for children, of dynamic parallelism version 1, that might as well not be there.
//
// A kernel is not complete before its children are. So a thread that does nothing any more behind its wait
// has waited for nothing that anybody could see. Nor has one whose kernel launches nothing and calls nothing
// that could.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The calls in the function that wait for children whose end matters, in text order.
std::vector<const ptx::Statement*> waits_that_matter(const FlowFacts& function);

// The first such call in the unit: its place, as "line 41:2". Nothing if there is none.
std::optional<std::string> wait_that_matters(const ptx::Module& unit);

}  // namespace klap::analysis
