// The functions that give memory to blocks that stop, put into the units that call them.
//
// A kernel that may have few registers cannot call a function of another unit that needs more. In one unit
// the assembler sees both.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The PTX, which has_frame_functions(), with the functions defined where it declares them. `frames` defines
// them (ptx-patterns/templates/suspension/frames.cu); `name` is for messages.
std::string with_frame_functions(const std::string& ptx, const ptx::Module& frames, const std::string& name);

// True if the PTX declares them.
bool has_frame_functions(const std::string& ptx);

}  // namespace klap::transform
