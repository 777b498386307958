// The real libcuda: found where the program itself loaded it, never loaded by us.
#pragma once

#include "runtime/driver.h"

namespace klap::shim {

// The C library's dlsym. Called from here it answers RTLD_NEXT from the shim's place in the search order.
using Dlsym = void* (*)(void* handle, const char* name);
Dlsym next_dlsym() noexcept;

// The driver's functions, null while the process has no libcuda.
const runtime::Driver* libcuda() noexcept;

// True if `symbol` lies in the libcuda that libcuda() describes, which it becomes if there was none yet. A
// second libcuda in one process (a stub, another linker namespace) is left alone.
bool in_libcuda(const void* symbol) noexcept;

}  // namespace klap::shim
