// Loads that may give old values where what they read is written in the same kernel.
//
// Children may read what other children of the same launch wrote. Their consumer then rewrites such loads in
// the code that it splices. Functions that a child calls are not spliced, so they must have no such load.
#pragma once

#include <optional>

#include "ptx/tree.h"

namespace klap::analysis {

// A function that `kernel` calls and the first token of its first `ldu` or `ld.nc`.
struct NoncoherentLoad {
  const ptx::Function* function = nullptr;
  uint32_t token = 0;
};
std::optional<NoncoherentLoad> noncoherent_load_below(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace klap::analysis
