// The part of a variant that all strategies but promotion share: the conditions under which the runtime may
// launch it.
#pragma once

#include <string>

#include "jit/data/variant.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// A variant of that name for the parent of a site, with all that does not depend on queues.
Variant aggregated_variant(const PlannedSite& site, const std::string& name);

// Notes where the parent's parameters are in its parameter block.
void describe_parameters(Variant& v, const ptx::Function& parent);

}  // namespace klap::jit
