// The options of a launch, and where each comes from.
//
// The order of precedence is: the caller's settings (environment, then config file), the annotations at the
// launch, those for its kernel (analysis/legality/annotations.h), and the defaults. An annotation that cannot
// be followed is ignored, and a note says so.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/legality/annotations.h"
#include "jit/data/request.h"

namespace klap::jit {

struct SiteOptions : settings::LaunchOptions {
  // Only what annotations ask for, 0 for nothing: the runtime has the settings.
  uint32_t concurrency = 0;
  uint64_t pool_bytes = 0;
  uint32_t pool = 0;
  bool launcher_is_asked = false;
  std::vector<std::string> notes;  // who asks for what, and what is ignored
};

// The options of the launches of one parent, in the order of its sites. A kernel's launches that are deferred
// all go one way: where several ways are asked for, the first launch that names one decides, and notes say
// so.
std::vector<SiteOptions> find_site_options(const Request& request, const analysis::FunctionFacts& parent);

// The ways in which the launches of a parent may go, best first. Launches for which nothing is to be done
// (granularity none) take no part.
std::vector<analysis::Way> ways_asked_for(const Request& request, std::span<const SiteOptions> options);

}  // namespace klap::jit
