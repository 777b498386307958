// From PTX modules to a linked Image: names resolved, variables laid out and initialised, instructions taken
// apart.
#pragma once

#include <memory>
#include <vector>

#include "emulator/code.h"
#include "emulator/memory.h"
#include "ptx/tree.h"

namespace klap::emulator {

// The units must stay alive only during the call. Links by name as nvlink does: one strong definition, weak
// ones give way, .extern declarations bind to a definition in any unit or to a builtin, symbols that are not
// .visible belong to their unit. Variables are allocated in `memory` and initialised. Throws
// Error(Unsupported) with unit, line and column for an instruction that the emulator does not know, and
// Error(Link) for an undefined or doubly defined symbol.
std::shared_ptr<Image> link_image(const std::vector<const ptx::Module*>& units, Memory& memory);

}  // namespace klap::emulator
