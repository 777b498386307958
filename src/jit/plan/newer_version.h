// Programs of dynamic parallelism version 1, made ones of version 2 before anything else is done with them.
//
// CUDA refuses version 1 for devices of compute capability 9.0 and later. So such a program has no machine
// code for these, and all of it comes from its PTX.
//
// Version 1 has room for any number of launches that wait, and version 2 loses those beyond a limit. So all
// launches of the program must be rewritten, or it stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/data/remark.h"
#include "jit/data/unit.h"

namespace klap::jit {

// The program in version 2, for a device of compute capability `sm`; nothing if it is not of version 1, can
// run there as it is, or cannot be one of version 2. Then its remarks say why, like those of any other.
// Throws Error(Parse).
std::optional<Program> in_newer_version(const Program& program, uint32_t sm);

// True if no launch is left. Says of all launches that they are of version 1.
bool all_run_in_newer_version(std::vector<SiteRemark>& remarks);

// Says of launches that stay in version 1 which one of `newer`, which are those in version 2, would be left.
void note_what_is_left(std::vector<SiteRemark>& remarks, const std::vector<SiteRemark>& newer);

}  // namespace klap::jit
