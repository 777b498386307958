// Units without CUDA's device runtime, for tools that take no module that has it.
//
// compute-sanitizer's racecheck refuses every module with device-side launches. Where the host launches all
// recorded children none are left to be made, but the program's own kernels stay in the image, and so does
// what a consumer that feeds itself does when its queue is full. Here each function of the device runtime
// becomes one of the unit that ends the kernel with an error (but for questions about the last error, which
// there cannot be): whoever still comes to a launch is seen, and nothing in the module is of the device
// runtime.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The unit's text with the device runtime's functions replaced.
std::string without_device_runtime(const ptx::Module& unit);

}  // namespace klap::transform
