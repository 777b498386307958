// This file checks device memory that a parent takes and gives back beside its launches.
//
// Memory that is taken stays until it is freed, so taking it has no order with launches. It may be freed by a
// kernel that comes later, or by the children. A parent that frees memory after a launch must know that no
// child uses it any more. Its evidence for that may not hold for a deferred child, unless it has waited for
// all children since the launch.
#pragma once

#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The first call that may free memory after a launch.
std::optional<Rejection> check_frees(const FunctionFacts& parent);

}  // namespace klap::analysis
