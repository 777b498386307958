// The text of a planned site: how it is rewritten, and why not in another way that would have been preferred.
// Its readers know the program, not this library.
#pragma once

#include <functional>

#include "jit/planned/planned.h"

namespace klap::jit {

// The detail and the notes of a site that is rewritten. `is_moldable` says whether its child is
// (analysis/values/moldable.h); it is asked only where the remark says so.
void describe_rewritten(SiteRemark& remark, const PlannedSite& planned,
                        const std::function<bool()>& is_moldable);

// Adds notes to the remark of a rejected site: the rejections over another granularity, which would
// have replaced the first one.
void note_other_aggregations(SiteRemark& remark, const PlannedSite& planned);

}  // namespace klap::jit
