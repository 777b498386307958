// Checks of a link: that no name is defined twice before it, and that every kernel is there behind it.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "jit/data/unit.h"
#include "jit/generate/generate.h"

namespace klap::jit {

// The kernels of machine code; `name` is for messages. Throws Error(Container) for what is no ELF file.
std::set<std::string> kernels_of(std::string_view cubin, const std::string& name);

// nvJitLink has been seen to report success for links that were not: every kernel must be there. Throws
// Error(Link).
void check_linked(const Program& program, const GeneratedUnits& generated, const std::string& cubin);

// nvJitLink does not report duplicate definitions, so no generated name may stand anywhere else. Throws
// Error(Internal).
void check_unique(const Program& program, const GeneratedUnits& generated);

}  // namespace klap::jit
