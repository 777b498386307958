// Using PTX that was made for another target than the device's.
//
// A program may carry machine code for this device and PTX only for newer ones: the usual way to build for
// several. That PTX is all there is to make variants from, but its source may look at the target it is
// compiled for (__CUDA_ARCH__), and host code may count on what the device's own machine code does. So it is
// used only where the assembler accepts it for the device and makes from it the very machine code of the
// parent, the child and what they call that the program carries.
#pragma once

#include "jit/plan/plan.h"

namespace klap::jit {

// Leaves every site for which that is not shown. Does nothing, and costs nothing, where all PTX is for this
// device. A unit without machine code has nothing to differ from. Throws Error(Toolchain) if nvJitLink is
// missing.
void reject_unproven_targets(const Program& program, const Request& request, Plan& plan);

}  // namespace klap::jit
