// Whether a consumer may be launched before its parent is complete, and wait for it itself
// (programmatic dependent launch; templates/common/await.h).
//
// The wait stands first in the consumer, and all that the parent wrote is visible behind it, to loads that
// are coherent. Those that are not are rewritten in the code that is spliced, but not in what a child calls,
// and textures have no other form. Kernels that are launched from the device complete after the blocks of the
// parent that launched them, and nobody says whether the wait is for those as well. And whoever deals in such
// dependences itself is left alone.
#pragma once

#include "ptx/tree.h"

namespace klap::analysis {

// Whether the code of a consumer may run children of `kernel` behind the wait.
bool may_start_early(const ptx::Module& module, const ptx::Function& kernel);

// The same of the parent, whose own launches are replaced: of what it calls.
bool may_be_overtaken(const ptx::Module& module, const ptx::Function& parent);

}  // namespace klap::analysis
