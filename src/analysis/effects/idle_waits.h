// Waits for children, of dynamic parallelism version 1, that might as well not be there.
//
// A kernel is not complete before its children are. So a thread that does nothing any more behind its wait
// has waited for nothing that anybody could see. Nor has one whose kernel launches nothing and calls nothing
// that could.
#pragma once

#include <optional>
#include <string>

#include "ptx/tree.h"

namespace klap::analysis {

// The first call in the unit that waits for children whose end matters: its place, as "line 41:2". Nothing if
// there is none.
std::optional<std::string> wait_that_matters(const ptx::Module& unit);

}  // namespace klap::analysis
