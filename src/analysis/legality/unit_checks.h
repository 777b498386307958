// This check says whether a translation unit is left alone as a whole.
#pragma once

#include <optional>

#include "analysis/facts/rejection.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The first objection to rewriting anything in a unit, the parent's or the child's. Debug builds are left
// unless someone asks for them: their users want to see the code that they wrote.
std::optional<Objection> object_to_unit(const ptx::Module& module, bool debug_allowed);

}  // namespace klap::analysis
