// Every setting of klap_jit, in one table.
//
// The environment, the config file and the hints in a program are checked against the table. `klap-ptx
// settings` prints it, and the pages beside this file are made from it, so none of them can disagree. Values
// are kept as text under their row (config.h). launch_options.h gives those of one launch their types, and
// Config those of the whole process.
//
// There are three kinds of rows. Most people need a few of the users' settings. Developers' settings are for
// measurements, and for finding out what an optimisation is worth. A switch of a single optimisation has no
// variable of its own: KLAP_OPTIMISE, and the key `optimise`, set any number of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/error.h"
#include "support/quantity.h"

namespace klap::settings {

enum class SettingType {
  Choice,
  Boolean,
  Path,
  Glob,
  Size,
  Count,
  Share,
  Threads,
  Blocks,
  Threshold,
  Metrics,
  Optimise
};

enum class Kind : uint8_t { User, Developer, Optimisation };

// Whether a hint in the program's source may give the setting (include/klap/annotate.cuh): for all launches
// of a kernel, or also for one launch.
enum class Hint : uint8_t { None, Kernel, Launch };

// Sections of the config file that a key may stand in.
enum class Section { Defaults, Kernel };
const char* to_string(Section section);  // "[defaults]", "[[kernel]]"

struct Setting {
  Kind kind;
  std::string_view variable;  // environment variable; empty when there is none
  std::string_view key;       // key in the config file; empty when there is none
  std::span<const Section> sections;
  SettingType type;
  std::span<const std::string_view> choices;  // valid values of a Choice
  std::string_view default_value;             // as the documentation shows it
  std::string_view documentation;             // one line
  Hint hint = Hint::None;

  // How people refer to it: the variable or, where there is none, the key.
  [[nodiscard]] std::string_view name() const { return variable.empty() ? key : variable; }
};

std::span<const Setting> table();

// The row of an environment variable, of a key in a section, or of an optimisation; null when there is none.
const Setting* find_variable(std::string_view variable);
const Setting* find_key(Section section, std::string_view key);
const Setting* find_optimisation(std::string_view name);
// The row of a key of [[kernel]] or of an optimisation.
const Setting* find_of_launch(std::string_view key);

// All variables, all optimisations, and the keys valid in a section, in the order of the table.
std::vector<std::string_view> variables();
std::vector<std::string_view> optimisations();
std::vector<std::string_view> keys(Section section);

// The allowed values, for people: "none | warp | grid | auto", "0 | 1", "path", "glob", "bytes, as 4096, 64M
// or 1G".
std::string describe_values(const Setting& setting);

bool is_valid(const Setting& setting, std::string_view value);

// An error for a bad value of `name` (the variable or the key), which suggests the nearest valid value. Empty
// if the value is valid.
std::optional<Error> check_value(const Setting& setting, std::string_view name, std::string_view value);

// The optimisations that KLAP_OPTIMISE selects, with their values, or an error in its text.
using Optimisations = std::variant<std::vector<std::pair<const Setting*, std::string>>, Error>;
Optimisations parse_optimise(std::string_view text);

// The rows of one kind as plain text for a terminal, and as a Markdown table.
std::string as_text(Kind kind);
std::string as_markdown(Kind kind);

}  // namespace klap::settings
