// A link under way (cuLinkCreate to cuLinkDestroy).
#pragma once

#include <string>

#include "emulator/driver/images/jit_options.h"
#include "emulator/driver/images/module.h"

struct CUlinkState_st {
  klap::emulator::driver::JitOptions options;
  klap::emulator::driver::Units units;
  std::string image;  // once it is complete
};
