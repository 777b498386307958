// This file makes the disk cache that the settings ask for.
#pragma once

#include <memory>

#include "jit/cache/disk_cache.h"
#include "settings/config.h"

namespace klap::runtime {

// Null when the settings want none or there is no folder for it.
std::unique_ptr<jit::DiskCache> make_disk_cache(const settings::Config& config);

}  // namespace klap::runtime
