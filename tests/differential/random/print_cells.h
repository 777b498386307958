// One access to a cell as PTX, in the code of a kernel or as a device function.
#pragma once

#include <string>

#include "random/print_expression.h"
#include "random/program.h"

namespace klap::differential::random {

// Puts the result into the register `into`, or 0 if there is none. Operands are registers of 32 bits.
void print_access(Code& code, const CellAccess& access, const std::string& address,
                  const std::string& operand, const std::string& swapped, const std::string& into);

// The device function that makes the access to the address in its first parameter, and returns the result.
std::string access_function_name(const CellAccess& access);
std::string access_function(const CellAccess& access);

}  // namespace klap::differential::random
