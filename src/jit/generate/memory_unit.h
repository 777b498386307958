// The code of a module whose device memory is aggregated (plan/find_device_memory.h): its units call
// functions of the module's own, and one more unit defines these.
#pragma once

#include <string>

#include "jit/planned/device_memory.h"

namespace klap::jit {

// A unit's PTX with the module's functions.
std::string with_own_memory(const std::string& ptx, const DeviceMemory& memory, const std::string& name);

// The unit that defines them. `lanes_apart`: some code that calls them may have lanes that do not go on
// together (transform/text/lanes_apart.h). Throws Error(Toolchain).
std::string device_memory_unit(const DeviceMemory& memory, bool lanes_apart);

}  // namespace klap::jit
