// This check says whether a translation unit is rejected as a whole.
#pragma once

#include <optional>

#include "analysis/facts/rejection.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The first rejection to rewriting anything in a unit, the parent's or the child's. Debug builds are rejected
// unless a setting asks for them: their users want to see the code that they wrote.
std::optional<Rejection> check_unit(const ptx::Module& module, bool debug_allowed);

}  // namespace klap::analysis
