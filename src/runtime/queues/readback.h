// Launcher host-readback: grid aggregation as in the KLAP paper, for comparison. The host waits for the
// parent, reads back how much it recorded, and launches a grid that has as many groups of threads as there
// are blocks of children: one each. Where nothing was recorded nothing is launched.
//
// The thread that launches the parent is blocked until the stream has come so far, and with it whoever
// launches into the same stream. So it must not be used where the stream waits for that thread.
#pragma once

#include <cuda.h>

#include "runtime/launch/parent_kernel.h"
#include "settings/config.h"

namespace klap::runtime {

// Whether the settings ask for it.
bool asks_for_readback(const settings::Config& config, const std::string& parent, const std::string& child);

// Whether it can be done: queues of a size of their own say nothing of what will be in them.
bool can_read_back(const jit::Variant& variant);

// In place of launch_consumers().
CUresult launch_after_readback(const PreparedVariant& prepared, const jit::Variant& variant,
                               LaunchContext& launch, const CUlaunchAttribute* priority);

}  // namespace klap::runtime
