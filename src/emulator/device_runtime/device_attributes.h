// Attributes of the device that programs can query, from the host and from device code alike.
#pragma once

#include <optional>
#include <string_view>

#include "emulator/grids/options.h"

namespace klap::emulator {

// By its number in CUdevice_attribute and cudaDeviceAttr; nothing for a number that the device does not know.
std::optional<int> device_attribute(const DeviceShape& device, int attribute);

// The runtime's errors: "cudaErrorInvalidValue". It also replaces CUDA's text for each, whose wording no
// program should rest on.
std::string_view runtime_error_name(int error);

}  // namespace klap::emulator
