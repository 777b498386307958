// The machine code that ptxas makes of a text, and whether two texts make the same program.
#pragma once

#include <filesystem>
#include <string>

#include "ptx/tree.h"

namespace klap::test {

struct MachineCode {
  std::string cubin;    // empty where ptxas refused
  std::string problem;  // ptxas's words
};

// Assembles for the module's own target, or for the oldest one that ptxas knows. `options` for ptxas: "-c",
// "-g". Leaves nothing behind in `folder`, which holds the text meanwhile.
MachineCode assemble(const ptx::Module& module, const std::string& options,
                     const std::filesystem::path& folder);

// The first difference between the sections that are the program: code, constants, variables and the driver's
// data about kernels. Empty if there is none.
std::string difference(const std::string& cubin, const std::string& other);

}  // namespace klap::test
