// These checks say whether the kernel that launches allows one of its launch sites to be rewritten.
//
// Legality is an allow-list. A site is rewritten only if everything that the parent and the child do is known
// to keep its meaning. Anything that is not on the lists is rejected with a named reason. Nothing is
// rewritten for want of a reason not to.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The place where a kernel may wait for other blocks, or for its children, as one sentence. Nothing if it
// does not wait.
std::optional<std::string> waits_for_others(const FunctionFacts& kernel);

// The first rejection to aggregating `site` that way on the parent's side.
std::optional<Rejection> check_parent(const FunctionFacts& parent, const Site& site,
                                      const Aggregation& aggregation = {});

}  // namespace klap::analysis
