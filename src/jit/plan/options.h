// The ptxas options that a unit of the program was built with, and what a relink must do about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace klap::jit {

struct BuildOptions {
  uint32_t register_cap = 0;                 // -maxrregcount; 0 when there is none
  bool line_info = false;                    // -lineinfo: the machine code carries line tables
  std::vector<std::string> code_changing{};  // everything else that may change code, in order

  bool operator==(const BuildOptions&) const = default;
};

// Splits the option string of a fatbin entry. Options that only change messages are dropped;
// one that is not known counts as changing code.
BuildOptions parse_options(const std::string& text);

}  // namespace klap::jit
