// The device runtime's last error, for bodies of which one thread of a consumer runs many. A thread of the
// program must not see the error that an earlier one left behind.
//
// The executor keeps the last error of a thread of the program in a register, because most launches do not
// come to the device runtime. Each call that does is followed by one that takes its error.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace klap::transform {

// A call that clears the last error, by the function's name that the kernel's own queries use. Names in it
// begin with `prefix`. The kernel must have a query.
std::string clear_last_error_text(const analysis::FunctionFacts& kernel, const std::string& prefix);

// A call that takes the last error, so that the device runtime has none any more. If there is one, it goes
// into the 32-bit register `error`. Conditions are those of the function above.
std::string take_last_error_text(const analysis::FunctionFacts& kernel, const std::string& prefix,
                                 const std::string& error);

// The `.extern` declaration of that function, if the kernel has queries and its unit does not declare it.
std::vector<std::string> last_error_declarations(const analysis::FunctionFacts& kernel);

}  // namespace klap::transform
