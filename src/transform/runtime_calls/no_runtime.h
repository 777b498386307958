// Units without CUDA's device runtime, for tools that take no module that has it.
//
// The racecheck of compute-sanitizer refuses every module with device-side launches. If the host launches all
// recorded children, no launch is left to be made. But the program's own kernels stay in the image, and so
// does the code of a consumer with a worklist for a full queue. Here each function of the device runtime
// becomes one of the unit that ends the kernel with an error. (Queries of the last error are answered: there
// cannot be one.) So a thread that still comes to a launch is noticed, and nothing in the module belongs to
// the device runtime.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The unit's text with the device runtime's functions replaced.
std::string without_device_runtime(const ptx::Module& unit);

}  // namespace klap::transform
