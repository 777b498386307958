// Finds the options of each launch, and where each comes from.
//
// The order of precedence is: the caller's settings (environment, then config file), the annotations at the
// launch, those for its kernel (analysis/legality/annotations.h), and the defaults. An annotation that cannot
// be followed is ignored, and a note says so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"
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

// An annotation of a program that is followed (include/klap/annotate.cuh), for lists.
struct ProgramHint {
  std::string parent;
  std::string child;  // of the launch it is for; empty: for all launches of the parent
  std::string key, value;
  std::string place;  // "unit 0: line 12:2"
};

// All annotations that are followed. Launches come before kernels, and the first that fits a launch holds.
// Throws Error(Parse).
std::vector<ProgramHint> program_hints(const Program& program, uint32_t sm);

}  // namespace klap::jit
