// NVRTC, as far as the code that it compiles is linked (runtime/load/link_calls.h). A program is linked
// against it, and calls the exported hook; or it opens it and asks dlsym, as Python's packages do.
#pragma once

namespace klap::shim {

// The hook for a function that dlsym finds at `handle`; null for other names, and where it finds none.
void* look_up_nvrtc(void* handle, const char* symbol);

}  // namespace klap::shim
