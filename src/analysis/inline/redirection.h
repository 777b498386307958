// This file tells whether a kernel's body can stand in another kernel, where its parameters lie elsewhere and
// its position is virtual.
//
// The legality checks and the splicer (transform/text/splice.h) both ask this, so the splicer can always do
// what the checks promised. Parameters are redirected where they are loaded, or where a 64-bit register gets
// their address. Components of position registers are redirected where the instruction reads them as 32 bits.
#pragma once

#include <cstdint>
#include <optional>

#include "ptx/tree.h"

namespace klap::analysis {

// The first token of the body that cannot be redirected: a parameter's name, a position register, or the
// opcode of an instruction that uses a parameter in an unknown form. Nothing if there is none.
std::optional<uint32_t> not_redirected(const ptx::Module& module, const ptx::Function& kernel);

// True if the token is a position register of which the instruction reads anything but 32 bits of one
// component.
bool reads_narrow_position(const ptx::Module& module, const ptx::Statement& instruction, uint32_t token);

}  // namespace klap::analysis
