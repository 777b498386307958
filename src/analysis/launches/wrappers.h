// Local wrappers are functions that do nothing but pass their parameters on to one device-runtime function.
//
// Without optimisation (nvcc -G) every device-runtime call goes through such a function, because the
// runtime's header defines its entry points inline. A call of a wrapper counts as the call that it makes.
#pragma once

#include <string_view>

#include "ptx/tree.h"

namespace klap::analysis {

// The device-runtime function that a call of `name` comes down to: `name` itself if it is one, or the one
// that it wraps. Empty for every other function, and wherever that cannot be shown.
//
// It is shown by following the parameters through the wrapper's straight-line code, its registers and its own
// stack frame: each must arrive at the same place of the runtime call, and the call's result must be
// returned.
std::string_view runtime_function(const ptx::Module& module, std::string_view name);
std::string_view runtime_function(const ptx::Module& module, const ptx::Function& function);

// True if `function` is a wrapper whose every use in the module is a direct call, so that the launch belongs
// to its callers. Only a function that no other unit can call counts.
bool is_wrapper_of_calls(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
