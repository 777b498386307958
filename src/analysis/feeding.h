// Children that launch themselves: what must hold for a consumer that feeds itself.
//
// Such a child is a parent at the same time, so its own launch must be one that could be aggregated; and it
// is run by the same kernel as what launched it, so that all its launches must have one shape, and what it
// reads must be read coherently. Nobody runs the descendants of one child before those of the next: where the
// NULL stream would, no update may depend on it.
#pragma once

#include <optional>

#include "analysis/legality.h"

namespace klap::analysis {

// The first objection to running `child` in a consumer that feeds itself; `site` of `parent`, which may be
// the child, launches it and was found right so far.
std::optional<Objection> object_to_feeding(const FunctionFacts& child, const FunctionFacts& parent,
                                           const Site& site, const Way& way);

}  // namespace klap::analysis
