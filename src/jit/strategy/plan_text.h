// Parts of a site's plan as text, which the strategies put together for dumps. Each is one or more lines.
#pragma once

#include <string>

#include "analysis/legality/recursion.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// Granularity, launcher, and the parent's blocks that launch as one.
std::string group_lines(const PlannedSite& site);

// The blocks of the child and of the consumer.
std::string consumer_lines(const PlannedSite& site);

// The kernels of a recursive group, by number.
std::string kernel_lines(const analysis::RecursiveGroup& recursive_group);

// How many children one launch of a warp can have.
std::string lane_lines(const transform::ConsumerShape& shape);

// "  record           8 bytes" and a line for each place; for one that is not packed, where arguments begin.
std::string record_lines(const transform::RecordLayout& layout);

}  // namespace klap::jit
