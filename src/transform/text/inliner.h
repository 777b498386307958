// Inlining: called functions written out in kernels, before anything is decided about the kernels' launches.
//
// A launch in a called function belongs to nobody's thread in particular, and a called function that asks for
// its place cannot be told another one. In a kernel that has the function's body in the call's place both are
// what the analyses and the rewriter know already. The text that comes out is what variants and consumers are
// made from; the program's own kernels stay what they are.
#pragma once

#include <optional>
#include <vector>

#include "analysis/inline/inlining.h"
#include "ptx/tree.h"

namespace klap::transform {

// The module's text with those calls written out, parsed. It must not outlive `module`.
//
// Parameters and results become registers, or arrays in local memory; `ret` becomes a branch behind the body;
// every name that a body declares gets a prefix of its own, but for annotations.
ptx::Module with_inlined_calls(const ptx::Module& module,
                               const std::vector<analysis::InlinedKernel>& kernels);

}  // namespace klap::transform
