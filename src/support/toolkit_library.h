// Libraries of the CUDA toolkit, opened with dlopen when they are first needed.
//
// A preloaded library must cost nothing in programs that do not need it, so none of them is linked. Where
// they are looked for: the file named by a variable of the environment if set (then nowhere else), the
// loader's own search path, $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.
#pragma once

#include <dlfcn.h>

#include <array>
#include <string>
#include <vector>

#include "support/error.h"

namespace klap {

// The ends of such a library's name, the best first.
inline constexpr std::array kToolkitSuffixes{".so.13", ".so.12", ".so"};

// Folders of the toolkit that have libraries, each with a slash at its end.
std::vector<std::string> toolkit_folders();

// Opens lib`stem`, or the file that `variable` names. Throws Error(Toolchain), which says how to help it.
void* open_toolkit_library(const std::string& stem, const char* variable);

// The file that an open library came from.
std::string file_of_library(void* library);

// Opens another library from the folder of an open one, and keeps it open. The loader then gives it to all
// who ask for it by its name, even if it would not look into that folder. It does nothing if a library of
// that name is open, or if none is there.
void open_beside(void* library, const std::string& name);

[[noreturn]] void throw_missing(void* library, const char* name);

// Throws Error(Toolchain) if the library has no such function.
template <typename Function>
void resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw_missing(library, name);
}

}  // namespace klap
