// From PTX modules to a linked Image: names resolved, variables laid out and initialised, instructions taken
// apart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/decode/code.h"
#include "emulator/memory_model/memory.h"
#include "ptx/tree.h"

namespace klap::emulator {

// The units must stay alive only during the call. Links by name as nvlink does: there is one strong
// definition, and weak ones give way. .extern declarations bind to a definition in any unit or to a builtin.
// Symbols that are not .visible belong to their unit. The toolkit's own device runtime is left out: the
// machine has its own. Variables are allocated in `memory` and initialised. Throws Error(Link) for an
// undefined or doubly defined symbol, and Error(Parse) for text that is no PTX.
//
// An instruction that the emulator does not know does not keep the module from loading: its function is
// marked (Function::unsupported), because programs link large libraries of which they run little.
std::shared_ptr<Image> link_image(const std::vector<const ptx::Module*>& units, Memory& memory);

// Why a kernel cannot run, for itself or for a function that it can reach by calls; empty if it can. To be
// asked before every launch.
inline const std::string& unsupported_in(const Image&, const Function& kernel) { return kernel.unsupported; }

// A listing for people and tests: one line an instruction, with its PTX line.
std::string print(const Image& image, const Function& function);
std::string print(const Image& image);

}  // namespace klap::emulator
