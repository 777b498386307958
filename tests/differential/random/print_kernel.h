// One kernel of a random program as PTX: its parameters, declarations and statements.
#pragma once

#include <string>

#include "random/program.h"

namespace klap::differential::random {

std::string print_kernel(const Program& program, const Layout& layout, uint32_t number);

// The name of a device function that kernels call.
std::string function_name(uint32_t function);

}  // namespace klap::differential::random
