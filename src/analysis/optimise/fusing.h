// Can a parent and the consumer of its children be one kernel (templates/aggregate/fused.cu)?
//
// Threads that end the parent's part go on to a barrier of their block, and then to the consumer's part. So
// three things must hold that two kernels have by themselves.
//
// - A thread that ends must be counted, and nobody may wait for one that has ended. A barrier of the parent
//   waits for all threads that have not exited. A thread that stands at the end of the parent's part has not.
//   So no thread may reach the end while others have still to meet (early_exit.h).
// - The children read what the parent has written in the same kernel. Loads of spliced code are made
//   coherent. Functions that a child calls are not spliced. Textures and asynchronous copies have no coherent
//   form, in the parent neither.
// - All parts have their shared variables at the same time, and these must fit. Dynamic shared memory is the
//   same for all parts, as much as the one needs that has most. So none may ask how much there is. The parent
//   may ask for its dynamic part where no child has any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The shared memory that the code between both parts takes, in bytes.
inline constexpr uint32_t kFusedSharedBytes = 8;

// The parameter with the rows and layers that the program asked for, in bytes.
inline constexpr uint32_t kProgramExtentsBytes = 16;

// Whether blocks of the parent, and its grid, may be launched with more rows or layers than the program asked
// for. Their threads do nothing in the parent's part. It learns how many there are only in ways that can be
// told the program's number instead, and threads of its blocks never wait for each other if these have more.
struct MoreThanAsked {
  bool threads = false, blocks = false;
};
MoreThanAsked may_have_more(const FunctionFacts& parent);

// A kernel of the parent's unit that it launches at one of its sites, with so many bytes of dynamic shared
// memory.
struct FusedChild {
  const ptx::Function& kernel;
  uint32_t shared_bytes = 0;
};

// Why the parent and all its children cannot; nothing if they can.
std::optional<std::string> why_not_fused(const FunctionFacts& parent,
                                         const std::vector<FusedChild>& children);

}  // namespace klap::analysis
