// Files that a program gives to the driver as modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace klap::runtime {

// The bytes of a file whose code may launch kernels on a device of compute capability `sm`, NUL-terminated.
// Nothing for files that cannot be read, which are the driver's to report. Code without launches is told by
// its names, without reading the rest: the driver reads the file once more, and that takes milliseconds.
std::optional<std::string> read_module_file(const char* file, uint32_t sm);

}  // namespace klap::runtime
