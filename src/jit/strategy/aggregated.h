// Parts that all strategies but promotion share: the conditions under which the runtime launches a variant,
// and lines of a dumped plan.
#pragma once

#include <string>

#include "jit/data/variant.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// A variant of that name for the parent of a site, with all that does not depend on queues.
Variant aggregated_variant(const PlannedSite& site, const std::string& name);

// Lines of a dumped plan: granularity, launcher and group; and then the layout of a record, with a line for
// each place if it is packed.
std::string group_lines(const PlannedSite& site);
std::string record_lines(const transform::RecordLayout& layout);

}  // namespace klap::jit
