// Settings as a process has them from given variables or from the text of a config file, and what is in force
// for the launches of one parent.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "settings/config.h"

namespace klap::settings {

// _Z6parentPii is parent(int*, int).
inline constexpr const char* kParent = "_Z6parentPii";

// The options that the planner gets for launches of a parent.
inline LaunchOptions options_of(const Config& config, const std::string& parent) {
  LaunchOptions out =
      launch_options([&](std::string_view key) { return config.setting_for(key, parent, ""); });
  if (!config.setting_for("granularity", parent, "")) out.granularity = analysis::Granularity::Auto;
  if (!config.setting_for("launcher", parent, "")) out.launcher = analysis::Launcher::Auto;
  return out;
}
inline analysis::Granularity granularity_of(const Config& config, const std::string& parent) {
  return options_of(config, parent).granularity;
}
inline analysis::Launcher launcher_of(const Config& config, const std::string& parent) {
  return options_of(config, parent).launcher;
}
inline uint32_t multiblock_of(const Config& config, const std::string& parent) {
  return options_of(config, parent).multiblock;
}

inline Config from_environment(const std::map<std::string, std::string>& variables) {
  return load_config([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

inline Config from_text(std::string_view text) {
  Config config;
  apply_config_text(config, text, "klap.toml");
  return config;
}

}  // namespace klap::settings
