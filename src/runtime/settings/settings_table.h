// Every setting of klap_jit, in one table.
//
// The table is what the environment and the config file are checked against, what `klap-ptx settings` prints
// and what SETTINGS.md beside this file is made from, so that the three cannot disagree. Values are kept
// as text under their row (config.h), so a new key of kernels is a new row here and the place that asks for
// it; a setting of the whole process also has a field in Config.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"
#include "support/quantity.h"

namespace klap::runtime {

enum class SettingType { Choice, Boolean, Path, Glob, Size, Count, Share, Threads, Blocks, Threshold };

// Sections of the config file that a key may stand in.
enum class Section { Defaults, Kernel };
const char* to_string(Section section);  // "[defaults]", "[[kernel]]"

struct Setting {
  std::string_view variable;  // environment variable; empty when there is none
  std::string_view key;       // key in the config file; empty when there is none
  std::span<const Section> sections;
  SettingType type;
  std::span<const std::string_view> choices;  // valid values of a Choice
  std::string_view default_value;             // as the documentation shows it
  std::string_view documentation;             // one line

  // How people refer to it: the variable or, where there is none, the key.
  [[nodiscard]] std::string_view name() const { return variable.empty() ? key : variable; }
};

std::span<const Setting> settings();

// The row of an environment variable or of a key in a section; null when there is none.
const Setting* find_variable(std::string_view variable);
const Setting* find_key(Section section, std::string_view key);

// All variables, and the keys valid in a section, in the order of the table.
std::vector<std::string_view> variables();
std::vector<std::string_view> keys(Section section);

// What a value may be, for people: "none | warp | grid | auto", "0 | 1", "path", "glob", "bytes, as 4096, 64M
// or 1G".
std::string describe_values(const Setting& setting);

// A Boolean's value: 1, true, yes, on and 0, false, no, off, whatever their case; nothing for anything else.
std::optional<bool> parse_boolean(std::string_view text);

// A Size, in bytes.
using klap::parse_size;

// A Count: how many there are in a group, which has at least two and no more than anything can hold; nothing
// for anything else.
std::optional<uint32_t> parse_count(std::string_view text);

// A Share: one part of so many, from 1 on.
std::optional<uint32_t> parse_share(std::string_view text);

// Threads of a block; 0 for "auto".
std::optional<uint32_t> parse_threads(std::string_view text);

// Threads that a multiprocessor holds; 0 for "auto".

// Off, auto, or threads from 0 on: whether it is one of these.
bool is_threshold(std::string_view text);

// Blocks of a grid, from 1 on; 0 for "auto".
std::optional<uint32_t> parse_blocks(std::string_view text);

// What is wrong with a value given to `name` (the variable or the key), with the nearest valid one; nothing
// when it is valid.
std::optional<Error> check_value(const Setting& setting, std::string_view name, std::string_view value);

// The table as plain text for a terminal, and as the Markdown table of SETTINGS.md.
std::string settings_text();
std::string settings_markdown();

}  // namespace klap::runtime
