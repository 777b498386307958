// The preload library, libklap_jit.so, as the tools find it and put it into a program's environment.
#pragma once

#include <string>

namespace klap::tool {

// The library that was built or installed with this program, or `given`, as an absolute path. Throws
// Error(Io), which names the places where it is not.
std::string find_preload_library(const std::string& given = "");

// Returns what this process has in LD_PRELOAD besides the library.
std::string preloaded_besides();

// LD_PRELOAD with the library first, and behind it what this process has there. Throws Error(Config) for a
// path that LD_PRELOAD cannot hold.
std::string with_preloaded(const std::string& library);

}  // namespace klap::tool
