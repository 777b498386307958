// klap-ptx config lists every setting with the value that is in force and the place it came from.
//
// It is made for the question "why does my key have no effect?". So it shows the value that won, not the
// values that were written. With the name of a kernel, the keys of kernels are shown as they apply to that
// one. Problems in the settings are printed as by every command, but here they also are the result: the exit
// code is then 1.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "jit/plan/find_site_options.h"
#include "klap_ptx/input.h"
#include "settings/table.h"
#include "support/error.h"

namespace klap::tool {

namespace {

using settings::Setting;
using settings::Value;

struct Line {
  const Setting* setting;
  Value value;
};

// One for each row that has a value; `name` and `child` choose tables and have none of their own.
std::vector<Line> effective(const settings::Config& config, const ConfigOptions& options) {
  const std::string* const kernel = options.kernel.empty() ? nullptr : &options.kernel;
  const std::string* const child = options.child.empty() ? nullptr : &options.child;
  std::vector<Line> lines;
  for (const Setting& setting : settings::table()) {
    if (setting.type == settings::SettingType::Glob) continue;
    lines.push_back({&setting, config.value(setting, kernel, child)});
  }
  return lines;
}

// If no setting says anything, the program's annotations hold.
void apply_hints(std::vector<Line>& lines, const ConfigOptions& options) {
  for_each_image(open_device_code(options.file), options.policy.sm, [&](const Image& image) {
    for (const jit::ProgramHint& hint : jit::program_hints(image.program, options.policy.sm)) {
      if (hint.parent != options.kernel || (!hint.child.empty() && hint.child != options.child)) continue;
      const auto line =
          std::ranges::find_if(lines, [&](const Line& l) { return l.setting->key == hint.key; });
      if (line == lines.end() || line->value.from != Value::From::Default) continue;
      line->value = {hint.value, Value::From::Program, image.label + ": " + hint.place};
    }
  });
}

const char* to_string(Value::From from) {
  switch (from) {
    case Value::From::Environment:
      return "environment";
    case Value::From::File:
      return "file";
    case Value::From::Tuned:
      return "tuned";
    case Value::From::Program:
      return "program";
    case Value::From::Default:
      break;
  }
  return "default";
}

void print_lines(const std::vector<Line>& lines) {
  size_t name_width = 0, value_width = 0;
  for (const Line& line : lines) {
    name_width = std::max(name_width, line.setting->name().size());
    value_width = std::max(value_width, line.value.text.size());
  }
  for (const Line& line : lines) {
    fmt::print("{:{}}  {:{}}  {}\n", line.setting->name(), name_width, line.value.text, value_width,
               line.value.place);
  }
}

void print_lines_as_json(const std::vector<Line>& lines, const settings::Config& config,
                         const std::string& kernel) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Line& line : lines) {
    rows.push_back({{"variable", line.setting->variable},
                    {"key", line.setting->key},
                    {"value", line.value.text},
                    {"from", to_string(line.value.from)},
                    {"place", line.value.place}});
  }
  print_json({{"kernel", kernel}, {"settings", std::move(rows)}, {"problems", config.problems}});
}

}  // namespace

void config(const ConfigOptions& options) {
  const settings::Config config = load_policy(options.policy);
  std::vector<Line> lines = effective(config, options);
  if (!options.file.empty()) apply_hints(lines, options);
  if (options.json) {
    print_lines_as_json(lines, config, options.kernel);
  } else {
    print_lines(lines);
  }
  if (!config.problems.empty()) throw Error(ErrorCode::Config, "the settings have problems, see above");
}

}  // namespace klap::tool
