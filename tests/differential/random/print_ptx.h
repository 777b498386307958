// Random programs as PTX, in the form in which nvcc writes kernels and launches (ptx-patterns/idioms).
#pragma once

#include <string>

#include "random/program.h"

namespace klap::differential::random {

// The program must be prepared and without a problem().
std::string print_ptx(const Program& program);

// The kernels' names in it.
std::string kernel_name(uint32_t kernel);

}  // namespace klap::differential::random
