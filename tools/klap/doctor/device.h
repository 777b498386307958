// The driver and the GPUs of this machine. The driver is opened here, so that klap starts without one.
#pragma once

#include <cstdint>
#include <optional>

#include "klap/doctor/finding.h"

namespace klap::tool {

struct Devices {
  Findings findings;
  int driver_version = 0;      // 13000 for 13.0; 0: there is none
  std::optional<uint32_t> sm;  // compute capability of the first GPU; nothing: there is none
};

Devices find_devices();

}  // namespace klap::tool
