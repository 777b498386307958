// Asynchronous copies are done where they are asked for: each becomes a load and a store, and the
// instructions that wait for them go (analysis/inline/asynchronous_copies.h).
#pragma once

#include <vector>

#include "analysis/inline/asynchronous_copies.h"
#include "ptx/tree.h"

namespace klap::transform {

// The module's text with those copies done at once, parsed. It must not outlive `module`.
ptx::Module with_synchronous_copies(const ptx::Module& module,
                                    const std::vector<analysis::AsynchronousCopy>& copies);

}  // namespace klap::transform
