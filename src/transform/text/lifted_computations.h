// Computations that stand in the scope of a call, moved in front of it (analysis/inline/sunk_computations.h),
// before anything is decided about a kernel's launches.
//
// As with inlined calls, variants are made from the resulting text. The program's own kernels stay as they
// are.
#pragma once

#include <vector>

#include "analysis/inline/sunk_computations.h"
#include "ptx/tree.h"

namespace klap::transform {

// Returns the module's text with these computations moved, parsed. It must not outlive `module`.
ptx::Module with_lifted_computations(const ptx::Module& module,
                                     const std::vector<analysis::SunkComputation>& computations);

}  // namespace klap::transform
