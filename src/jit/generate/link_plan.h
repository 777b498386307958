// The link plan lists the inputs of the link: the program's units, the generated units behind their own, and
// CUDA's device runtime where the program has none. A unit goes in as it is, or assembled anew from its PTX.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "jit/data/linker.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"
#include "jit/generate/generate.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// Everything that goes into the link, in the program's order, generated units behind their own.
struct LinkPlan {
  std::vector<LinkInput> inputs;
  std::deque<std::string> texts;          // generated PTX that the inputs point to; a deque never moves it
  std::vector<std::string> code_options;  // of the PTX that is assembled
  bool line_info = false;                 // some of that PTX was to carry line tables
  char suffix = '\0';                     // of the narrowest target that an input is for
};

// `memory`: the units get other functions for their device memory. `anew`: this unit is assembled from its
// PTX even if nothing was added to it. Throws Error(Unsupported) for units that cannot be assembled together,
// and Error(Toolchain) where the device runtime is not found.
LinkPlan plan_link(const Program& program, const Request& request, Plan& plan, GeneratedUnits& generated,
                   const DeviceMemory& memory, std::optional<size_t> anew);

}  // namespace klap::jit
