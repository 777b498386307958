// Calls of the device runtime that are not part of a launch that is understood: how they are named in
// reasons.
#pragma once

#include <string>
#include <string_view>

#include "analysis/effects/effects.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// A call of a device-runtime function: "waits for its children (cudaDeviceSynchronize), line 41:2".
std::string runtime_call_text(std::string_view function, const std::string& place);
// A device-runtime call that is no part of a launch understood. `subject` is empty for the parent itself.
Rejection check_runtime_call(std::string_view function, const std::string& subject, const std::string& place);

// A call whose function is defined in another unit: "f is defined in another unit (line 41:2)".
std::string unknown_callee_text(const ptx::Module& module, const Effect& call);

}  // namespace klap::analysis
