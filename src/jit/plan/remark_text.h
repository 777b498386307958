// What is said of a planned site: how it is rewritten, and why not in a way that would have been preferred.
// Who reads it knows the program, not this library.
#pragma once

#include "jit/plan/planned.h"

namespace klap::jit {

// The detail and the notes of a site that is aggregated; `is_moldable`: its child is
// (analysis/values/moldable.h).
void describe_rewritten(SiteRemark& remark, const PlannedSite& planned, bool is_moldable);

// Of a site that is left: what stood against ways of another granularity, which would have made up for the
// first one.
void note_other_ways(SiteRemark& remark, const PlannedSite& planned);

}  // namespace klap::jit
