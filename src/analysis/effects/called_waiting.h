// Waiting that a kernel does by the functions that it calls.
//
// waiting.h looks at the loops of one function. A function that waits is as good as a loop in the kernel
// itself, wherever it is called. And a loop around the call of a function that sees what other threads do may
// wait by what the call leaves in memory, if the loop goes on by something that it reads there; so may such a
// function that calls itself. What a call returns is waiting.h's.
#pragma once

#include <optional>
#include <string>

#include "analysis/effects/effects.h"

namespace klap::analysis {

// The first of them in what `kernel` calls, at any depth, and in its own loops around calls; one sentence
// with its place. `graph` is the kernel's.
std::optional<std::string> waiting_by_calls(const CallGraph& graph, const ptx::Function& kernel);

}  // namespace klap::analysis
