// Inlining: called functions copied into kernels, before anything is decided about the kernels' launches.
//
// A launch in a called function belongs to no particular thread, and a called function that asks for its
// place cannot be told another one. A kernel may have the function's body in place of the call. Then the
// analyses and the rewriter know both cases already. Variants and consumers are made from the resulting text.
// The program's own kernels stay as they are.
#pragma once

#include <optional>
#include <vector>

#include "analysis/inline/inlining.h"
#include "ptx/tree.h"

namespace klap::transform {

// The module's text with those calls inlined, parsed. It must not outlive `module`.
//
// Parameters and results become registers, or arrays in local memory; `ret` becomes a branch behind the body;
// every name that a body declares gets a prefix of its own, but for annotations.
ptx::Module with_inlined_calls(const ptx::Module& module,
                               const std::vector<analysis::InlinedKernel>& kernels);

}  // namespace klap::transform
