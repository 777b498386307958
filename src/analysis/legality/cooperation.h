// The threads of a child's block may cooperate: they meet at barriers, exchange values in a warp, and share
// memory. This file checks that.
//
// The answer depends on who runs the child's blocks. An exact grid consists of these blocks, so everything
// works as it does natively. The consumer that the host launches runs them one after another in the same
// threads, and `ret` becomes a branch to the end of the body. A barrier then waits for threads that have left
// in the program but not in the consumer. So all threads must reach it, which early_exit.h shows or not.
// Otherwise the threads that have left must let the others go on, which works for one plain barrier
// (templates/common/exits.h). A barrier with a count may meet one of the block before. Warp operations have
// no such way out. Between two blocks the consumer keeps the warp or the block together. So no thread
// overwrites shared memory that another one still reads. Full warps of the child must be full warps of the
// consumer.
//
// Atomic operations, fences and the like of scope .cta order memory among the threads of a block only. Such a
// block must be within one block of the consumer, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"
#include "analysis/synchronisation/early_exit.h"

namespace klap::analysis {

// The threads that may exit a block of the child early, if that must be known. The consumer can be made for
// it. Nothing if no consumer can.
std::optional<MayExit> early_exits(const ptx::Module& module, const ptx::Function& child,
                                   const std::array<uint32_t, 3>& block);
// The shared memory that a block may have, static and dynamic together, unless the program asked for more by
// an attribute.
inline constexpr uint64_t kSharedLimit = 48 << 10;
// Every device lets a kernel have that much that asks for it by the attribute. One KiB of 64 is CUDA's.
inline constexpr uint64_t kAskedSharedLimit = 63 << 10;
// At most so many bytes of shared variables a block of the kernel has, alignment included.
uint64_t most_static_shared_bytes(const ptx::Module& module, const ptx::Function& kernel);

// The rejection to running such a child that way. `shared_bytes` is the dynamic shared memory of its launch.
std::optional<Rejection> check_cooperation(const ptx::Module& module, const ptx::Function& child,
                                           const CallGraph& graph, const std::array<uint32_t, 3>& block,
                                           uint32_t shared_bytes, const Aggregation& aggregation);

// The executor can make the barriers of a child's block that is smaller than its own, or whose last warp is
// not full (templates/executor/child_barrier.h). This is the rejection to that. All of these must be plain
// barriers of the whole block in the child's own code, and all of its threads must come to each.
// `has_full_warps` says that the last warp is full. Otherwise no lanes of a warp may work together.
std::optional<Rejection> check_counted_barriers(const ptx::Module& module, const ptx::Function& child,
                                                const CallGraph& graph, bool has_full_warps);
// True if threads of the child's block meet at barriers of the whole block.
bool has_block_barriers(const ptx::Module& module, const ptx::Function& child);
// True for `bar` and `barrier`, other than those of a warp.
bool is_block_barrier(const ptx::Module& module, const ptx::Statement& instruction);

// The dynamic shared memory, in bytes, that a launch of the child can have wherever its code stands. It is
// the limit of a block that has not asked for more, less the child's own variables.
uint32_t shared_room(const ptx::Module& module, const ptx::Function& child);
// The most that CUDA lets a launch of the kernel have, if the program has not changed that. The assembler
// lays out the kernel's variables by falling alignment, and the dynamic part begins at a multiple of 16. That
// was measured with CUDA 13.0 on an H200. So this is compared with the driver's number before anything relies
// on it.
uint32_t default_shared_limit(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace klap::analysis
