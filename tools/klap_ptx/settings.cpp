// klap-ptx settings: the table of settings as text, as the Markdown table of SETTINGS.md, or as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "klap_ptx/input.h"
#include "runtime/settings/settings_table.h"

namespace klap::tool {

namespace {

nlohmann::json as_json() {
  nlohmann::json rows = nlohmann::json::array();
  for (const runtime::Setting& setting : runtime::settings()) {
    nlohmann::json places = nlohmann::json::array();
    for (const runtime::Section section : setting.sections) places.push_back(runtime::to_string(section));
    rows.push_back({{"variable", setting.variable},
                    {"key", setting.key},
                    {"sections", std::move(places)},
                    {"values", runtime::describe_values(setting)},
                    {"default", setting.default_value},
                    {"documentation", setting.documentation}});
  }
  return rows;
}

}  // namespace

void settings(const SettingsOptions& options) {
  if (options.json) {
    print_json(as_json());
  } else {
    fmt::print("{}", options.markdown ? runtime::settings_markdown() : runtime::settings_text());
  }
}

}  // namespace klap::tool
