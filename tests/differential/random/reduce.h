// Makes a failing program smaller while it still fails.
//
// Every edit that could take something away is tried in a fixed order, from whole steps and kernels down to
// single operands; one that leaves a program without the failure is taken back. It ends when no single edit
// can be made any more.
#pragma once

#include <functional>

#include "random/program.h"

namespace klap::differential::random {

// `fails` is asked about legal, prepared programs only. Stops early after `most_tries` of its answers.
Program reduce(Program program, const std::function<bool(const Program&)>& fails, size_t most_tries = 4000);

// How much there is left of it: statements, expressions, launches, arguments.
size_t size_of(const Program& program);

}  // namespace klap::differential::random
