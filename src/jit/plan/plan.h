// The plan of a module's rewrite: every launch site found, and for each whether and how it is rewritten.
//
// Everything up to here is analysis: neither NVRTC nor nvJitLink is needed, so `klap-ptx explain` stops here.
#pragma once

#include "jit/data/request.h"
#include "jit/data/timings.h"
#include "jit/data/unit.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// Takes the program's units in and parses those that launch kernels; their calls are inlined when they are
// asked for. Throws Error(Parse) if such a unit cannot be read.
Plan load_units(const Program& program, const Request& request, Timings& timings);

// Finds all sites of the units, and for each the options that are asked for; promotes chains; judges the
// other sites, optimises those that are rewritten, and writes the remarks.
void plan_sites(Plan& plan, const Request& request, Timings& timings);

}  // namespace klap::jit
