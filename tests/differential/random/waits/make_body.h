// Makes the body of a kernel of a random program that waits.
#pragma once

#include "random/random_source.h"
#include "random/waits/program.h"

namespace klap::differential::waits {

// Fills in variables and body of kernel `number`. It may launch later kernels, which are complete, and
// itself. `sites` counts the launches of the program.
void make_body(random::Random& random, Program& program, uint32_t number, bool launches, uint32_t& sites);

}  // namespace klap::differential::waits
