// Calls for an argument buffer, moved to where it is filled (analysis/inline/early_requests.h), before
// anything is decided about a kernel's launches.
//
// As with inlined calls, variants are made from the resulting text. The program's own kernels stay as they
// are.
#pragma once

#include <vector>

#include "analysis/inline/early_requests.h"
#include "ptx/tree.h"

namespace klap::transform {

// Returns the module's text with these calls moved, parsed. It must not outlive `module`.
ptx::Module with_moved_requests(const ptx::Module& module,
                                const std::vector<analysis::EarlyRequest>& requests);

}  // namespace klap::transform
