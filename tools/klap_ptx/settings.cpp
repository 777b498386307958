// klap-ptx settings: the table of settings as text, as the Markdown table of SETTINGS.md, or as JSON.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "klap_ptx/input.h"
#include "settings/table.h"

namespace klap::tool {

namespace {

const char* kind_text(settings::Kind kind) {
  switch (kind) {
    case settings::Kind::User:
      return "user";
    case settings::Kind::Developer:
      return "developer";
    case settings::Kind::Optimisation:
      break;
  }
  return "optimisation";
}

nlohmann::json as_json() {
  nlohmann::json rows = nlohmann::json::array();
  for (const settings::Setting& setting : settings::table()) {
    nlohmann::json places = nlohmann::json::array();
    for (const settings::Section section : setting.sections) places.push_back(to_string(section));
    rows.push_back({{"variable", setting.variable},
                    {"key", setting.key},
                    {"kind", kind_text(setting.kind)},
                    {"sections", std::move(places)},
                    {"values", settings::describe_values(setting)},
                    {"default", setting.default_value},
                    {"documentation", setting.documentation}});
  }
  return rows;
}

void print_table(settings::Kind kind, bool markdown) {
  fmt::print("{}", markdown ? as_markdown(kind) : as_text(kind));
}

}  // namespace

void settings(const SettingsOptions& options) {
  if (options.json) {
    print_json(as_json());
  } else if (!options.developers) {
    print_table(settings::Kind::User, options.markdown);
  } else {
    print_table(settings::Kind::Developer, options.markdown);
    fmt::print("\n");
    print_table(settings::Kind::Optimisation, options.markdown);
  }
}

}  // namespace klap::tool
