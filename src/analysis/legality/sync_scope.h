// The threads of a block that synchronise with each other or share memory.
//
// A consumer runs one block of a child after another. It may let threads go on to the next block one by one,
// warp by warp, or only all at once, and it needs blocks of a certain size where threads wait for each other.
// Functions that the kernel calls count, too.
#pragma once

#include "ptx/tree.h"

namespace klap::analysis {

// Thread: no thread depends on another one.
enum class SyncScope { Thread, Warp, Block };

// The threads that wait for each other, at barriers or in operations of a warp.
SyncScope sync_scope(const ptx::Module& module, const ptx::Function& kernel);

// The threads that must all have ended a block of the kernel before one of them begins the next block. In
// contrast to sync_scope(), shared memory and accesses of block scope count.
SyncScope reuse_scope(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace klap::analysis
