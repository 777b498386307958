// The plan of a module's rewrite: every launch site found, and for each whether and how it is rewritten.
//
// Everything up to here is analysis: neither NVRTC nor nvJitLink is needed, so `klap-ptx explain` stops here.
#pragma once

#include "jit/data/request.h"
#include "jit/data/timings.h"
#include "jit/data/unit.h"
#include "jit/plan/planned.h"

namespace klap::jit {

// Finds and judges all sites of the program. Throws Error(Parse) if a unit that launches kernels cannot be
// read.
Plan make_plan(const Program& program, const Request& request, Timings* timings = nullptr);

}  // namespace klap::jit
