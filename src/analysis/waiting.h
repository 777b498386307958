// Loops by which a kernel may wait for another thread.
//
// A deferred child cannot be waited for by its parent, and blocks that a consumer runs one after another
// cannot wait for each other. CUDA promises neither, but programs get away with both natively, so a kernel
// with a loop that looks like waiting is left alone.
#pragma once

#include <optional>
#include <string>

#include "analysis/dataflow.h"
#include "analysis/flow.h"

namespace klap::analysis {

// The first instruction by which a loop of the function may see what other threads do and stay for it: a
// strong load (volatile, relaxed, acquire), a fence or a sleep in a loop, or an atomic whose result decides
// whether the loop goes on. A compare-and-swap that retries with what it read is not waiting: some thread
// succeeds every time. One sentence with its place; nothing if there is none.
std::optional<std::string> may_wait(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data);

// True for a load that must not be assumed to give the same value twice.
bool is_strong_load(const ptx::Module& module, const ptx::Statement& instruction);

}  // namespace klap::analysis
