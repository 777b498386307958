// The disk cache as the settings want it.
#pragma once

#include <memory>
#include <string>

#include "jit/cache/disk_cache.h"
#include "runtime/settings/config.h"

namespace klap::runtime {

// Null when the settings want none or there is no folder for it.
std::unique_ptr<jit::DiskCache> make_disk_cache(const Config& config);

// The settings that decide what becomes of a kernel, as text for the cache's key. Everything that
// Config::granularity_for and its like look at belongs in here; settings that change no code do not, since
// each difference makes another entry.
std::string code_settings(const Config& config);

}  // namespace klap::runtime
