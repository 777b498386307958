#include "runtime/module_cache.h"

#include <fmt/format.h>

namespace klap::runtime {

std::unique_ptr<jit::DiskCache> make_disk_cache(const Config& config) {
  if (config.cache_disabled || config.cache_dir.empty()) return nullptr;
  jit::DiskCacheOptions options;
  options.folder = config.cache_dir;
  options.max_bytes = config.cache_max_bytes;
  return std::make_unique<jit::DiskCache>(options);
}

std::string code_settings(const Config& config) {
  if (config.environment_granularity) {
    return fmt::format("granularity {}\n", jit::to_string(*config.environment_granularity));
  }
  std::string text = fmt::format("granularity {}\n", jit::to_string(config.default_granularity));
  for (const KernelTable& table : config.kernels) {
    if (!table.granularity) continue;
    text += fmt::format("kernel {} {} granularity {}\n", table.glob.size(), table.glob,
                        jit::to_string(*table.granularity));
  }
  return text;
}

}  // namespace klap::runtime
