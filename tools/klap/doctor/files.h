// The settings, the folder of the cache, and the preload library.
#pragma once

#include <string>

#include "klap/doctor/finding.h"
#include "settings/config.h"

namespace klap::tool {

Findings check_settings(const settings::Config& config);
Finding check_cache(const settings::Config& config);
// Also gives the library's path, or nothing if it cannot be preloaded.
Finding check_library(const std::string& given, std::string& library);

}  // namespace klap::tool
