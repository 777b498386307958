// Functions in which the lanes of a warp that come to a place together may not go on together.
//
// Lanes that come to a launch together share its atomics. One of them does the work, and the others wait for
// it with the mask of all. ptxas takes such a mask to be the same in all lanes that run together. That is so
// while it brings lanes together again behind each branch. It cannot where a loop has several ways in: there
// groups of a warp's lanes may be at the same place, each with its own mask. And it lets the warp go over to
// other lanes in front of an atomic (YIELD). So lanes of two groups may go on together, with two masks. On an
// H200 they were seen to wait for ever for lanes that had gone ahead.
//
// In such functions a lane works together with the others if all 32 are there, since there is no other group
// then. Else it works alone. ptxas sees that those masks differ.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// True if the module has such functions, or branches whose targets are unknown.
bool may_go_apart(const ptx::Module& module);

// The PTX with lanes_together() of the templates (common/warp.h) changed in those functions. `name` is for
// messages.
std::string with_lanes_apart(std::string ptx, const std::string& name);

}  // namespace klap::transform
