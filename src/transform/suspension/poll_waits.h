// Units whose kernels poll for what their children write, with a wait in front of each look.
//
// split_unit.h then makes the kernels stop there. So a loop that polls is no loop any more: each look is made
// by a grid of its own, and children run between two of them.
#pragma once

#include <optional>
#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The unit's text, in the same lines; nothing if no kernel that launches polls, nor a function that it calls.
std::optional<std::string> with_waits_at_polls(const ptx::Module& unit);

}  // namespace klap::transform
