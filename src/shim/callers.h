// Functions of libraries that programs are linked against, as their callers would have found them.
//
// An exported hook comes first in the global scope, also for callers whose own library is in a scope of
// theirs, such as a plug-in's. And there may be several of them in a process, of the same version.
#pragma once

namespace klap::shim {

// The function that `caller`, an address in its code, would have reached without the hook; null if none is
// found. If nothing else helps, it is that of any object that is loaded: code that jumped to the hook shows
// only its own caller, and then there is most often only one.
void* function_for(const void* caller, const char* symbol);

}  // namespace klap::shim
