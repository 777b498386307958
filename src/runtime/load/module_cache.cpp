#include "runtime/load/module_cache.h"

namespace klap::runtime {

std::unique_ptr<jit::DiskCache> make_disk_cache(const settings::Config& config) {
  if (config.cache_disabled || config.cache_dir.empty()) return nullptr;
  jit::DiskCacheOptions options;
  options.folder = config.cache_dir;
  options.max_bytes = config.cache_max_bytes;
  return std::make_unique<jit::DiskCache>(options);
}

}  // namespace klap::runtime
