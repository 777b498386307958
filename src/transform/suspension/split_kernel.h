// Kernels that wait for their children, split where they wait.
//
// A block that must wait stops (analysis/suspension/suspension.h): it leaves what its threads need in a frame
// (frame_code.h), launches a grid of one block into its grid's tail-launch stream, and ends. That grid runs
// when all children are complete. It is the same kernel, and begins where each of the threads stands. So the
// program launches and no longer waits, and all that can be done with launches can be done with it.
//
// CUDA's wait is for the children of the thread's block. A tail launch also awaits those of the grid's other
// blocks. That they can be waited for is certain: no child may wait for a block of its parent's grid, since
// CUDA promises neither that both run at once.
//
// Where nothing has been launched since the last wait, the block goes on without stopping.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/tree.h"

namespace klap::transform {

// A wait that a kernel is split at.
struct SplitWait {
  std::string place;  // "line 41:2"
  std::string kernel;
  uint64_t bytes_per_thread = 0;
};

struct SplitUnit {
  std::string text;
  std::vector<SplitWait> waits;
  // Functions that wait and that no kernel of the unit needs any more. No other unit may call them.
  std::vector<std::string> waiting_functions;
  std::string problem;  // why a kernel cannot be split, with its name and a place; then there is no text
};

// The unit with its kernels split at all waits that matter, in the terms of the older device runtime. Nothing
// if there are none.
std::optional<SplitUnit> split_at_waits(const ptx::Module& unit);

}  // namespace klap::transform
