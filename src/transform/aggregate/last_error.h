// The device runtime's last error, for bodies of which one thread of a consumer runs many. A thread of the
// program must not see the error that an earlier one left behind.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace klap::transform {

// A call that clears the last error, by the function's name that the kernel's own queries use. Names in it
// begin with `prefix`. The kernel must have a query.
std::string clear_last_error_text(const analysis::FunctionFacts& kernel, const std::string& prefix);

// The `.extern` declaration of that function, if the kernel has queries and its unit does not declare it.
std::vector<std::string> last_error_declarations(const analysis::FunctionFacts& kernel);

}  // namespace klap::transform
