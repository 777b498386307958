#include "runtime/launch/variant_launch.h"

#include <fmt/format.h>

#include <string>

#include "runtime/context_errors.h"
#include "runtime/counters/counted_launch.h"
#include "runtime/driver.h"
#include "runtime/launch/kernel_timer.h"
#include "runtime/launch/launch_range.h"
#include "runtime/launch/stream_turns.h"

namespace klap::runtime {

CUresult launch_variant(const Launch& launch, CUfunction function, void** params, void** extra) {
  if (launch.attributes.empty()) {
    return driver()->launch_kernel(function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                                   launch.block[1], launch.block[2], launch.shared_bytes, launch.stream,
                                   params, extra);
  }
  CUlaunchConfig config{};
  config.gridDimX = launch.grid[0];
  config.gridDimY = launch.grid[1];
  config.gridDimZ = launch.grid[2];
  config.blockDimX = launch.block[0];
  config.blockDimY = launch.block[1];
  config.blockDimZ = launch.block[2];
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = launch.stream;
  config.attrs = const_cast<CUlaunchAttribute*>(launch.attributes.data());
  config.numAttrs = static_cast<unsigned>(launch.attributes.size());
  return driver()->launch_kernel_ex(&config, function, params, extra);
}

Outcome leave_refused(ParentKernel& parent, CUresult result) {
  if (is_of_context(result)) return leave(reasons::kContextFailed);
  const char* const what = parent.variant().is_fused()
                               ? "the kernel that runs its own children does not launch, two kernels do"
                               : "the variant does not launch, the original runs";
  parent.warn_once(fmt::format("{} ({})", what, error_name(result)));
  return leave(reasons::kVariantDoesNotLaunch);
}

Outcome launch_alone(const Launch& launch, ParentKernel& parent, CUfunction function, void** params,
                     void** extra) {
  const Operation operation(launch.stream);
  const LaunchRange range(parent);
  CountedLaunch counted(parent.name());
  TimedLaunch timed(parent.name(), launch.stream);
  const CUresult result = launch_variant(launch, function, params, extra);
  if (result != CUDA_SUCCESS) return leave_refused(parent, result);
  timed.parent_enqueued();
  timed.complete();
  counted.complete();
  return {};
}

}  // namespace klap::runtime
