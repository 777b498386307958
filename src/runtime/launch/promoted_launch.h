// Launching a chain that was promoted: a kernel of one block that launches itself has become a kernel of
// resident blocks, which run the links in turn (ptx-patterns/templates/promote/promote.h).
//
// The program launches its first link. In its place go as many blocks as the chain is to have, with the
// program's own parameters and one more, the chain's memory; all links have run when the kernel ends, so
// nothing follows it. (Where its blocks launch each other, one goes, and a parameter behind the chain's says
// how many may be under way at a time.) The variant was made for one form of launch; another one runs the
// original, whose links then launch each other as they always did.
#pragma once

#include "runtime/launch/launch_context.h"
#include "runtime/launch/parent_kernel.h"
#include "runtime/launch/variant_launch.h"

namespace klap::runtime {

// The caller holds the context's mutex and has seen to everything that concerns all variants alike.
Outcome launch_chain(const Launch& launch, ParentKernel& parent, LaunchContext& context);

}  // namespace klap::runtime
