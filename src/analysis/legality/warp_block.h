// Blocks of one warp that run beside others in a block of the consumer.
//
// A consumer that runs children block by block has as many of them at once as the device holds blocks, 32 on
// a multiprocessor: with children of one warp, half of the threads that it holds. Children whose lanes only
// exchange values share a block of the consumer anyway. Children that meet at the block's barrier or share
// memory can do so as well. Such a barrier becomes one of the warp, and each warp of the consumer gets shared
// variables of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

// A shared variable of a body. `bytes` is a multiple of `align`; `own_bytes` are those that it has itself.
struct SharedVariable {
  const ptx::Statement* declaration = nullptr;  // in the body; null if the unit declares it
  std::string name;
  uint32_t align = 1, bytes = 0, own_bytes = 0;
};

// `.shared .align 4 .b8 name[4][32];`, perhaps with a linkage in front; nothing for other forms, such as
// vectors.
std::optional<SharedVariable> read_shared_variable(const ptx::Module& module, ptx::TokenRange declaration);

struct WarpBlock {
  std::vector<SharedVariable> variables;
  std::vector<const ptx::Statement*> barriers;  // of the whole block: each becomes one of the warp
  [[nodiscard]] uint32_t shared_bytes() const;  // at most, alignment included
};

// The verdict: either the changes that the child needs, or the reason why it cannot be.
struct WarpBlockVerdict {
  std::optional<WarpBlock> block;
  std::string why_not;
};

// Judges a child whose blocks are one warp, without dynamic shared memory.
WarpBlockVerdict judge_warp_block(const ptx::Module& module, const ptx::Function& child,
                                  const std::array<uint32_t, 3>& block);

}  // namespace klap::analysis
