// The strategy for launches that lanes of a warp share: those that arrive at a site together launch one
// kernel, which runs the children of all of them (transform/aggregate/warp.h).
//
// Nothing is deferred, so it suits programs that wait for their children. The runtime only launches the
// variant in the parent's place.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& warp_strategy();

}  // namespace klap::jit
