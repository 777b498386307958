// The ways out of a kernel: where its threads end, and whether all of them can be seen.
//
// A parent that launches its children itself counts its threads out, so every thread must pass a place where
// it is counted, and must be gone after it. The second half matters where threads wait for each other. A
// barrier waits for every thread that has not ended. So a thread that returned early must not stand at a
// common `ret` until the others arrive there. Compilers merge all returns of a kernel into one such place.
// The branches to it are therefore ways out themselves.
#pragma once

#include <optional>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

struct Exits {
  // `ret`, `exit`, and `bra` to either of them where threads wait for each other; in text order.
  std::vector<const ptx::Statement*> ways;
  bool falls_off_end = false;  // control can reach the closing brace
};
// Finds the exits. A recorded launch always gets its buffer, so the branch for a thread that did not get one
// is never taken. It may be taken if a launch may be the program's own (`may_lack_buffer`).
Exits find_exits(const FunctionFacts& kernel, bool may_lack_buffer);

// True if threads of the kernel wait for each other at barriers, or in operations of warps.
bool threads_wait(const FunctionFacts& kernel);

// The reason why the kernel's threads cannot be counted out; nothing if they can.
std::optional<Rejection> check_exits(const FunctionFacts& kernel);

}  // namespace klap::analysis
