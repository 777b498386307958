// Which bytes of its parameter block a kernel reads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

// One load, or all of a parameter whose address is taken: then nobody can tell what is read of it.
struct ParameterRead {
  uint32_t offset = 0, bytes = 0;  // in the parameter block
  uint32_t align = 1;              // that the load needs, or may need
};

// All reads of the kernel's own parameters, once for each place in its text. What it passes on to functions
// it has loaded before, or taken the address of. Nothing if a load leaves the parameter that it names.
std::optional<std::vector<ParameterRead>> parameter_reads(const ptx::Module& module,
                                                          const ptx::Function& kernel);

}  // namespace klap::analysis
