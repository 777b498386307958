// Units of dynamic parallelism version 1 in terms of version 2.
//
// Each function of the older device runtime has a namesake in the newer one, with the same parameters. For
// programs in which no wait for children matters (analysis/effects/idle_waits.h) it also means the same:
// children of a block's NULL stream follow each other, streams and events are the same, and no kernel is
// complete before its children are. Waits return at once. What version 2 adds, launches into two more
// streams, such programs do not know.
#pragma once

#include <optional>
#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The unit's text with the newer runtime's functions; nothing if it uses none of the older one. No wait in it
// may matter.
std::optional<std::string> in_newer_runtime(const ptx::Module& unit);

// The unit's text in which the functions that it defines for waits (include/klap/annotate.cuh) return at
// once; nothing if it defines none. No wait in it may matter.
std::optional<std::string> with_idle_waits(const ptx::Module& unit);

}  // namespace klap::transform
