// Statistics as text for people.
#pragma once

#include <array>
#include <string>

#include "klap/statistics.h"

namespace klap::tool {

// Three lines: what was rewritten, what became of the children, and what was left as it is.
std::array<std::string, 3> summary_lines(const Statistics& statistics);

// All that is known of each kernel, in lines.
std::string full_summary(const Statistics& statistics);

}  // namespace klap::tool
