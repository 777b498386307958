// All ways of redirecting a launch share this: the outcome, and handing a variant to the driver.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/launch_reasons.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

// The outcome of a launch: its result, or the reason why the original is to run.
struct Outcome {
  CUresult result = CUDA_SUCCESS;
  MaybeReason left = nullptr;
  uint64_t slices = 1;                 // that it ran in
  MaybeReason ran_original = nullptr;  // the reason why the original was launched, with that result
  bool in_order = false;               // the children, since what their overlap needs does not hold
};
inline Outcome leave(const LaunchReason& reason) { return {CUDA_SUCCESS, &reason}; }

// Launches `function` with `launch`'s grid, block, stream and attributes.
CUresult launch_variant(const Launch& launch, CUfunction function, void** params, void** extra);

// The outcome where the driver has refused to launch a variant: the original is to run. If an earlier kernel
// has ended the context with an error, the original's launch returns that error.
Outcome leave_refused(ParentKernel& parent, CUresult result);

// Launches a variant that nothing is enqueued behind. If it does not launch, the original is to run.
Outcome launch_alone(const Launch& launch, ParentKernel& parent, CUfunction function, void** params,
                     void** extra);

}  // namespace klap::runtime
