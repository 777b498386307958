// Launching a promoted chain: a kernel of one block that launches itself has become a kernel of resident
// blocks, which run the links in turn (ptx-patterns/templates/promote/promote.h).
//
// The program launches its first link. Instead, as many blocks as the chain is to have are launched, with the
// program's own parameters and one more, the chain's memory. All links have run when the kernel ends, so
// nothing follows it. (If its blocks launch each other, one block is launched. A parameter behind the chain's
// says how many may run at a time.) The variant was made for one form of launch. Another form runs the
// original, whose links then launch each other as they always did.
#pragma once

#include "runtime/launch/variant_launch.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// True if the program launches the chain in the form that it was promoted for.
bool is_launch_of(const jit::PromotedChain& chain, const Launch& launch);

// The caller holds the context's mutex and has handled everything that concerns all variants alike.
Outcome launch_chain(const Launch& launch, ParentKernel& parent, LaunchContext& context);

}  // namespace klap::runtime
