// Finds the options of each launch, and where each comes from.
//
// The order of precedence is: the caller's settings (environment, then config file), the annotations at the
// launch, those for its kernel (analysis/legality/annotations.h), and the defaults. An annotation that cannot
// be followed is ignored, and a note says so.
#pragma once

#include <span>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "jit/data/request.h"
#include "jit/planned/site_options.h"

namespace klap::jit {

// The options of the launches of one parent, in the order of its sites. A kernel's launches that are deferred
// all have one aggregation: where several are asked for, the first launch that names one decides, and notes
// say so.
std::vector<SiteOptions> find_site_options(const Request& request, const analysis::FunctionFacts& parent);

// The aggregations that the launches of a parent may have, best first. Launches for which nothing is to be
// done (granularity none) take no part.
std::vector<analysis::Aggregation> aggregations_asked_for(const Request& request,
                                                          std::span<const SiteOptions> options);

}  // namespace klap::jit
