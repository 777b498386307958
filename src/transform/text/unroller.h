// Copy loops are unrolled before anything is decided about a kernel's launches. A copy of a structure then
// has one load and one store for each element, as for small structures (analysis/inline/copy_loops.h).
//
// As with inlined calls, variants are made from the resulting text. The program's own kernels stay as they
// are.
#pragma once

#include <vector>

#include "analysis/inline/copy_loops.h"
#include "ptx/tree.h"

namespace klap::transform {

// The module's text with those loops unrolled, parsed. It must not outlive `module`.
ptx::Module with_unrolled_copies(const ptx::Module& module, const std::vector<analysis::CopyLoop>& loops);

}  // namespace klap::transform
