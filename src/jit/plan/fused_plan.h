// The plan of a variant whose own kernel runs the children (templates/aggregate/fused.cu). It stands beside a
// parent's first variant, whose children run in a consumer that the host launches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jit/data/request.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// Turns a site of the first variant, as it was judged, into one of that variant.
void fuse(PlannedSite& site);

// Why the variant of those sites cannot be made; nothing if it can.
std::optional<std::string> why_not_fused(const Request& request, const std::vector<PlannedSite>& sites);
// Why they cannot run in that order, which is that of their queues, once they are optimised.
std::optional<std::string> why_not_in_order(const std::vector<PlannedSite>& sites);

// The note for the first variant's remarks.
std::string fused_note(const std::vector<PlannedSite>& sites, const std::optional<std::string>& why_not);

}  // namespace klap::jit
