// This file tells whether a consumer may be launched before its parent is complete, and wait for it itself
// (programmatic dependent launch; templates/common/await.h).
//
// The wait stands first in the consumer. All that the parent wrote is visible behind it, to loads that are
// coherent. Other loads are rewritten in the code that is spliced, but not in functions that a child calls,
// and textures have no other form. A kernel that is launched from the device completes after the parent's
// blocks that launched it. CUDA does not say whether the wait covers such kernels as well. A kernel that uses
// such dependences itself is rejected, too.
#pragma once

#include "ptx/tree.h"

namespace klap::analysis {

// True if all that children of `kernel` read is coherent, or is made so where their code is spliced. They may
// then run in a kernel during which other code writes what they read.
bool reads_coherently(const ptx::Module& module, const ptx::Function& kernel);

// True if the code of a consumer may run children of `kernel` behind the wait.
bool may_start_early(const ptx::Module& module, const ptx::Function& kernel);

// True if the consumer may start before `parent` is complete. The parent's own launches are replaced, so only
// its calls are looked at.
bool may_be_overtaken(const ptx::Module& module, const ptx::Function& parent);

}  // namespace klap::analysis
