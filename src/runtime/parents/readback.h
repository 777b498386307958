// Launcher host-readback: grid aggregation as in the KLAP paper, for comparison. The host waits for the
// parent and reads back how much it recorded. It then launches a grid with one group of threads for each
// block of a child. If nothing was recorded, nothing is launched.
//
// The thread that launches the parent is blocked until the stream has come so far. So are other threads that
// launch into that stream. So this launcher must not be used where the stream waits for that thread.
#pragma once

#include <cuda.h>

#include <span>

#include "runtime/parents/parent_kernel.h"
#include "settings/config.h"

namespace klap::runtime {

// Whether the settings ask for it.
bool asks_for_readback(const settings::Config& config, const std::string& parent, const std::string& child);

// Replaces launch_consumers().
CUresult launch_after_readback(const PreparedVariant& prepared, const jit::Variant& variant,
                               LaunchContext& launch, std::span<const CUlaunchAttribute> attributes);

}  // namespace klap::runtime
