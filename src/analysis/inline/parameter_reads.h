// Which bytes of its parameter block a kernel reads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

// One load, or all of a parameter whose address is taken, because it is then unknown what is read of it.
struct ParameterRead {
  uint32_t offset = 0, bytes = 0;  // in the parameter block
  uint32_t align = 1;              // that the load needs, or may need
};

// All reads of the kernel's own parameters, once for each place in its text. A value that it passes to a
// function was loaded before, or its address was taken. Nothing if a load leaves the parameter that it names.
std::optional<std::vector<ParameterRead>> parameter_reads(const ptx::Module& module,
                                                          const ptx::Function& kernel);

}  // namespace klap::analysis
