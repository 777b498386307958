#include "klap/given_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "settings/spelling.h"
#include "settings/table.h"

namespace klap::tool {

namespace {

using settings::Setting;

constexpr std::string_view kPrefix = "KLAP_";
constexpr const char* kOptimise = "KLAP_OPTIMISE";

// KLAP_LOG as "log"; such a key is not in the config file, but is what people would write.
std::string short_name(std::string_view variable) {
  std::string name(variable.substr(std::min(variable.size(), kPrefix.size())));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::vector<std::string> names_of(const Setting& setting) {
  std::vector<std::string> names;
  if (!setting.key.empty()) names.emplace_back(setting.key);
  if (setting.variable.empty()) return names;
  if (short_name(setting.variable) != setting.key) names.push_back(short_name(setting.variable));
  names.emplace_back(setting.variable);
  return names;
}

// Rows that choose kernels in a config file have no value for a whole program.
bool is_for_programs(const Setting& setting) { return setting.type != settings::SettingType::Glob; }

const Setting* find_setting(const std::string& name) {
  for (const Setting& setting : settings::table())
    if (is_for_programs(setting) && std::ranges::count(names_of(setting), name) != 0) return &setting;
  return nullptr;
}

std::string unknown(const std::string& name) {
  if (std::ranges::find(settings::table(), name, &Setting::key) != settings::table().end())
    return fmt::format("'{}' chooses kernels in a config file, which --config names", name);
  std::vector<std::string> all;
  for (const Setting& setting : settings::table())
    if (is_for_programs(setting)) std::ranges::copy(names_of(setting), std::back_inserter(all));
  const auto near = settings::nearest(name, {all.begin(), all.end()});
  return fmt::format("unknown setting '{}'; {}", name,
                     near ? fmt::format("did you mean '{}'?", *near) : "klap settings lists them");
}

// The key is empty if the text has none.
std::pair<std::string, std::string> split(const std::string& key_and_value) {
  const size_t equals = key_and_value.find('=');
  if (equals == std::string::npos) return {};
  return {key_and_value.substr(0, equals), key_and_value.substr(equals + 1)};
}

// Optimisations share a variable, in which the last one counts.
void add_optimisation(const std::string& text) {
  const char* const set = std::getenv(kOptimise);
  const std::string all = set != nullptr && *set != '\0' ? fmt::format("{},{}", set, text) : text;
  setenv(kOptimise, all.c_str(), 1);
}

}  // namespace

std::string setting_problem(const std::string& key_and_value) {
  const auto [name, value] = split(key_and_value);
  if (name.empty()) return fmt::format("'{}' is no KEY=VALUE, such as granularity=grid", key_and_value);
  const Setting* const setting = find_setting(name);
  if (setting == nullptr) return unknown(name);
  const std::optional<Error> problem = settings::check_value(*setting, name, value);
  return problem ? problem->what() : "";
}

std::string name_in_environment(const std::string& key_and_value) {
  return std::string(find_setting(split(key_and_value).first)->name());
}

void apply_setting(const std::string& key_and_value) {
  const auto [name, value] = split(key_and_value);
  const Setting* const setting = find_setting(name);
  if (setting->variable.empty()) {
    add_optimisation(key_and_value);
  } else {
    setenv(std::string(setting->variable).c_str(), value.c_str(), 1);
  }
}

}  // namespace klap::tool
