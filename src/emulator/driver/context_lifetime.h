// This file makes and destroys contexts. A context's streams, modules and functions go with it, so it stands
// above all of these.
#pragma once

#include "emulator/driver/process.h"

namespace klap::emulator::driver {

CUcontext make_context(Process& process, int device, unsigned flags, bool is_primary);
void destroy_context(Process& process, CUcontext context);

// The totals of all contexts that there were.
Totals totals(Process& process);

}  // namespace klap::emulator::driver
