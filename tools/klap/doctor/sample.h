// A small program whose launches are rewritten, and that runs where there is a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "klap/doctor/finding.h"
#include "settings/config.h"

namespace klap::tool {

// Whether its PTX is rewritten and linked for a device.
Finding check_rewriting(const settings::Config& config, uint32_t sm);
// Whether it runs right, in a process of its own with the library preloaded.
Finding check_sample_run(const std::string& library, bool has_device);
// Returns the findings in place of both where NVRTC is broken, which has a finding of its own.
Findings without_nvrtc();

}  // namespace klap::tool
