// The calling thread's context: its device, and heavy work that is done in it.
#pragma once

#include <cstdint>
#include <functional>

namespace klap::runtime {

// The compute capability that code is compiled for, 90 for 9.0: that of the current device, or with
// `every_device` the one that all devices have. It is 0 if there is none.
uint32_t target_capability(bool every_device);

// Runs heavy work where there is room for it, in the caller's context: the driver's linker works in one.
// There need not be a driver yet.
void in_own_thread(const std::function<void()>& work);

}  // namespace klap::runtime
