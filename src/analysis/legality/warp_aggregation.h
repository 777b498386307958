// Legality of warp aggregation: lanes of a warp that arrive at the site together share one immediate launch.
//
// Nothing is deferred. The launch goes into the stream that the program named, at the place where the program
// launches. So loops, barriers, several sites and other work in streams keep their order by themselves. Only
// things that belong to a thread rather than to its block are left to check: its own stream and its last
// error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The first rejection to aggregating the launches of a site by warp, beside rejections to any rewrite of it.
// Its stream is one that can be aggregated at all.
std::optional<Rejection> check_warp_aggregation(const FunctionFacts& parent, const Site& site);

// The rejection to a kernel's device-runtime calls other than launches.
std::optional<Rejection> check_calls_beside(const FunctionFacts& parent);

}  // namespace klap::analysis
