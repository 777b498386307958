// nvJitLink, as the program uses it: the toolkit's linker (runtime/load/link_calls.h).
//
// A program reaches it in two ways. If it is linked against it, it calls names with the version of its
// toolkit (__nvJitLinkCreate_13_0), which the shim exports. Or it opens the library and asks dlsym for the
// plain names. CUDA's own libraries are linked against nvJitLink, too, and more than one version of it may be
// in a process. So each hook calls the very function that the program would have called: the one that dlsym
// found, or the one in the library that the caller is linked against.
#pragma once

namespace klap::shim {

// The hook for a function that dlsym finds at `handle`; null for other names, and where it finds none.
void* look_up_nvjitlink(void* handle, const char* symbol);

}  // namespace klap::shim
