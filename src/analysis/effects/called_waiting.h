// Waiting that a kernel does by the functions that it calls.
//
// waiting.h looks at the loops of one function. A function that waits counts as a loop in the kernel itself,
// wherever it is called. A loop around a call may also wait by what the call leaves in memory. That is so if
// the called function sees what other threads do, and the loop goes on by a value that it reads in memory.
// Such a function may wait, too, if it calls itself. waiting.h treats the values that calls return.
#pragma once

#include <optional>
#include <string>

#include "analysis/effects/effects.h"

namespace klap::analysis {

// The first wait in the functions that `kernel` calls, at any depth, and in its own loops around calls. It is
// one sentence with its place. `graph` is the kernel's.
std::optional<std::string> waiting_by_calls(const CallGraph& graph, const ptx::Function& kernel);

}  // namespace klap::analysis
