// Makes a failing program that waits smaller while it still fails.
#pragma once

#include <functional>

#include "random/waits/program.h"

namespace klap::differential::waits {

// Smaller programs may use memory in ways that have more than one result: `fails` must tell. Stops early
// after `most_tries` of its answers.
Program reduce(Program program, const std::function<bool(const Program&)>& fails, size_t most_tries);

// How many statements and operations there are.
size_t size_of(const Program& program);

}  // namespace klap::differential::waits
