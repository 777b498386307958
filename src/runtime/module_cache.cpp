#include "runtime/module_cache.h"

#include <fmt/format.h>

#include "runtime/settings_table.h"

namespace klap::runtime {

std::unique_ptr<jit::DiskCache> make_disk_cache(const Config& config) {
  if (config.cache_disabled || config.cache_dir.empty()) return nullptr;
  jit::DiskCacheOptions options;
  options.folder = config.cache_dir;
  options.max_bytes = config.cache_max_bytes;
  return std::make_unique<jit::DiskCache>(options);
}

std::string code_settings(const Config& config) {
  std::string text;
  for (const Setting& setting : settings()) {
    // All that kernels can have, so that no later one is forgotten, but for what changes no code.
    if (setting.key.empty() || setting.key == "name" || setting.key == "pool_bytes") continue;
    text += fmt::format("{} {}\n", setting.key, config.value(setting).text);
    if (config.environment.contains(setting.variable)) continue;  // decides for all kernels
    for (const KernelTable& table : config.kernels) {
      const auto value = table.values.find(setting.key);
      if (value == table.values.end()) continue;
      text += fmt::format("{} {} of {} {}\n", setting.key, value->second.text, table.glob.size(), table.glob);
    }
  }
  // Two linkers make two images of the same code.
  text += fmt::format("linker {}\n", static_cast<int>(config.linker));
  return text;
}

}  // namespace klap::runtime
