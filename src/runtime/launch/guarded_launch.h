// Asks a parent's guard which form a launch takes, and launches the program's own kernel where it is
// measured.
#pragma once

#include <cstdint>

#include "runtime/launch/variant_launch.h"
#include "runtime/launch_reasons.h"
#include "runtime/parents/launch_guard.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/program_launch.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// The number of device-side launches that CUDA lets wait in the current context. A variant may refuse a
// launch of its own accord only if CUDA might have done so.
uint64_t pending_limit();

// True if the launch is one that runs as it is, since a guard of `first` or of a variant behind it found that
// to be faster for the launch before. The guard counts it then. It may be asked before all else.
bool is_known_original(const Launch& launch, ParentKernel& first);

// How the guard has the launch made: by the variant if there is no guard. A choice is logged when it is made.
LaunchGuard::Next next_form(const Launch& launch, ParentKernel& parent, LaunchContext& context);

// Launches the program's own kernel, which is tried or checked, and measures it.
Outcome launch_measured_original(const Launch& launch, MeasuredLaunch& measured, LaunchGuard::Next next);

// KLAP_GUARD=original: launches the program's own kernel, and times it as a variant would be.
Outcome launch_original(const Launch& launch, const ParentKernel& parent);

}  // namespace klap::runtime
