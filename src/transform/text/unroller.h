// Copy loops written out, before anything is decided about a kernel's launches: a copy of a structure becomes
// what it is for small structures, one load and one store for each element (analysis/inline/copy_loops.h).
//
// As with inlined calls, variants are made from the text that comes out; the program's own kernels stay what
// they are.
#pragma once

#include <vector>

#include "analysis/inline/copy_loops.h"
#include "ptx/tree.h"

namespace klap::transform {

// The module's text with those loops written out, parsed. It must not outlive `module`.
ptx::Module with_unrolled_copies(const ptx::Module& module, const std::vector<analysis::CopyLoop>& loops);

}  // namespace klap::transform
