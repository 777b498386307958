// NVRTC and nvJitLink, which compile and link what is rewritten.
#pragma once

#include "klap/doctor/finding.h"
#include "settings/config.h"

namespace klap::tool {

// `driver_version` as of the driver, 0 where there is none.
Findings find_toolchain(const settings::Config& config, int driver_version);

}  // namespace klap::tool
