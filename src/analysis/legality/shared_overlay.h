// Shared variables of several kernels that one consumer runs, in one piece of memory.
//
// A block of the consumer runs one block of a kernel at a time, and a block's shared memory has no value at
// its beginning. So the variables of different kernels may lie in the same place. They do if only the kernel
// itself names them: functions that it calls are shared by all kernels, and would need a place of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct OverlaidVariable {
  std::string name;
  uint32_t offset = 0, bytes = 0;
  const ptx::Statement* declaration = nullptr;  // in the kernel's body; null if the unit declares it
};

struct SharedOverlay {
  std::vector<std::vector<OverlaidVariable>> kernels;  // by kernel, as they were given
  uint32_t bytes = 0, align = 1;                       // of the common piece; 0 bytes: there is none
};

// There is none unless at least two kernels have such variables.
SharedOverlay shared_overlay(const ptx::Module& module, std::span<const ptx::Function* const> kernels);

}  // namespace klap::analysis
