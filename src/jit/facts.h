// Decisive facts of a launch for its remark, beyond those that the plan itself needs.
#pragma once

#include <string>

#include "analysis/legality.h"
#include "ptx/tree.h"

namespace klap::jit {

// Whether the child's threads are told apart by one number only (analysis/moldable.h).
bool is_moldable(const ptx::Module& module, const ptx::Function& child);

// "1 of 2 arguments grid-uniform": those that are the same for all threads of the parent's grid. Empty where
// the child has no parameters.
std::string uniform_arguments_text(const analysis::FunctionFacts& parent, const analysis::Site& site,
                                   const ptx::Function& child);

}  // namespace klap::jit
