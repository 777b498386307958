// From the arguments of a launch function to a launch.
#pragma once

#include "emulator/driver/streams/work.h"

namespace klap::emulator::driver {

struct LaunchArguments {
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  void** parameters = nullptr;  // one pointer a parameter, or
  void** extra = nullptr;       // a buffer with all of them
};

// `context`: where a CUkernel is looked for.
KernelLaunch make_launch(Process& process, CUfunction function, CUctx_st& context,
                         const LaunchArguments& arguments);

}  // namespace klap::emulator::driver
