// State of the whole process: the settings, and whether klap_jit is active at all.
//
// Nothing here runs before the program first touches CUDA through a hooked function. Objects are leaked on
// purpose. CUDA programs unload modules from exit handlers, after static destructors of this library would
// have run. The hooks must still find their tables then.
#pragma once

#include <string>

#include "settings/config.h"

namespace klap::runtime {

// The settings, read on first use; sets the log level and logs what is wrong with them.
const settings::Config& config();

// False when every hook must only forward. Either KLAP_DISABLE is set, or this is a forked child of a process
// that had already loaded device code. CUDA does not work in such a child, and locks of the parent's other
// threads would stay taken for ever.
bool active() noexcept;

// Makes active() false in every child that this process forks from now on.
void guard_against_forks();
// True in such a child.
bool is_forked_child() noexcept;

}  // namespace klap::runtime
