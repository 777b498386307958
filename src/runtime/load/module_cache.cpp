#include "runtime/load/module_cache.h"

#include <fmt/format.h>

#include "runtime/settings/settings_table.h"

namespace klap::runtime {

std::unique_ptr<jit::DiskCache> make_disk_cache(const Config& config) {
  if (config.cache_disabled || config.cache_dir.empty()) return nullptr;
  jit::DiskCacheOptions options;
  options.folder = config.cache_dir;
  options.max_bytes = config.cache_max_bytes;
  return std::make_unique<jit::DiskCache>(options);
}

namespace {

bool changes_no_code(std::string_view key) {
  return key == "name" || key == "child" || key == "pool_bytes" || key == "total_bytes" ||
         key == "concurrency" || key == "pool";
}

}  // namespace

std::string code_settings(const Config& config) {
  std::string text;
  for (const Setting& setting : settings()) {
    // All that kernels can have, so that no later one is forgotten, but for what changes no code.
    if (setting.key.empty() || changes_no_code(setting.key)) continue;
    const Value general = config.value(setting);
    // Remarks say who asked, and are kept with the code.
    text += fmt::format("{} {} {}\n", setting.key, general.text, static_cast<int>(general.from));
    if (config.environment.contains(setting.variable)) continue;  // decides for all kernels
    for (const KernelTable& table : config.kernels) {
      const auto value = table.values.find(setting.key);
      if (value == table.values.end()) continue;
      text += fmt::format("{} {} of {} {} {} {}\n", setting.key, value->second.text, table.glob.size(),
                          table.glob, table.child_glob.size(), table.child_glob);
    }
  }
  // Two linkers make two images of the same code.
  text += fmt::format("linker {}\n", static_cast<int>(config.linker));
  return text;
}

}  // namespace klap::runtime
