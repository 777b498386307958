// These checks say whether a launched kernel allows its launches to be rewritten (parent_checks.h asks the
// parent).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The first rejection on the child's side. `child_module` defines `child`; `parent` and `site` are the
// launch.
std::optional<Rejection> check_child(const ptx::Module& child_module, const ptx::Function& child,
                                     const FunctionFacts& parent, const Site& site,
                                     const Aggregation& aggregation = {});
// Makes the same checks when more is known of the child's block than the launch says.
std::optional<Rejection> check_child(const ptx::Module& child_module, const ptx::Function& child,
                                     const FunctionFacts& parent, const Site& site,
                                     const Aggregation& aggregation,
                                     const std::optional<std::array<uint32_t, 3>>& block);

}  // namespace klap::analysis
