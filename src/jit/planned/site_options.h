// The options of one launch: those that settings and annotations share, and those that only annotations give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings/launch_options.h"

namespace klap::jit {

struct SiteOptions : settings::LaunchOptions {
  // Only what annotations ask for, 0 for nothing: the runtime has the settings.
  uint32_t concurrency = 0;
  uint64_t pool_bytes = 0;
  uint32_t pool = 0;
  bool launcher_is_asked = false;
  std::vector<std::string> notes;  // who asks for what, and what is ignored
};

}  // namespace klap::jit
