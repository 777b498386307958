#include "settings/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "settings/table.h"
#include "settings/values.h"

namespace klap::settings {

namespace {

// Whether a setting that is at `value` has an effect beside another one.
using Clash = bool (*)(std::string_view value, std::string_view other);

struct Rule {
  std::string_view key, other;
  Clash clash;
  const char* why;
};

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> all) {
  return std::ranges::find(all, value) != all.end();
}

bool launches_in_groups(std::string_view launcher, std::string_view granularity) {
  return is_one_of(launcher, {"host", kHostReadback, "fused"}) &&
         is_one_of(granularity, {"warp", "block", "multiblock"});
}

bool is_switched_off(std::string_view value, std::string_view launcher) {
  return launcher == kHostReadback && value != "off";
}

constexpr const char* kBaseline = "that launcher is for comparison and switches this off";

constexpr Rule kRules[] = {
    {"launcher", "granularity", launches_in_groups,
     "at that granularity the parent launches the children itself"},
    {"flatten", "launcher", is_switched_off, kBaseline},
    {"threshold", "launcher", is_switched_off, kBaseline},
};

const Setting& row(std::string_view key) { return *find_of_launch(key); }

Error contradiction(std::string_view one, const Value& value, std::string_view other,
                    const Value& other_value, std::string_view why) {
  return Error(ErrorCode::Config, fmt::format("{} {} ({}) contradicts {} {} ({}): {}", one, value.text,
                                              value.place, other, other_value.text, other_value.place, why))
      .fix("leave one of them out");
}

// Finds what holds for the kernels of a table, or for those of none.
std::optional<Value> find_value(const Config& config, const KernelTable* table, std::string_view key) {
  const auto given = config.given(row(key));
  if (table == nullptr || (given && given->from == Value::From::Environment)) return given;
  const auto own = table->values.find(row(key).key);
  return own == table->values.end() ? given : std::optional(own->second);
}

std::optional<Error> check_table(const Config& config, const KernelTable* table) {
  for (const Rule& rule : kRules) {
    const auto value = find_value(config, table, rule.key), other = find_value(config, table, rule.other);
    if (value && other && rule.clash(value->text, other->text))
      return contradiction(rule.key, *value, rule.other, *other, rule.why);
  }
  return std::nullopt;
}

// Counted launches take long, so their times are compared with nothing.
std::optional<Error> check_counters(const Config& config) {
  const auto counters = config.given(*find_variable("KLAP_COUNTERS"));
  const auto guard = config.given(*find_variable("KLAP_GUARD"));
  if (!counters || !guard || !is_one_of(guard->text, {"on", "process"})) return std::nullopt;
  return contradiction("KLAP_GUARD", *guard, "KLAP_COUNTERS", *counters, "counting changes the times");
}

std::optional<Error> check_statistics(const Config& config) {
  if (!config.stats_file.empty()) return std::nullopt;
  for (const char* const variable : {"KLAP_SIZES", "KLAP_COUNTERS"}) {
    const auto given = config.given(*find_variable(variable));
    if (!given || !parse_boolean(given->text).value_or(true)) continue;
    return Error(ErrorCode::Config, "what it counts is a part of the statistics")
        .at(variable)
        .fix("name a file for them in KLAP_STATS");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> find_contradiction(const Config& config) {
  for (const auto check : {check_counters, check_statistics})
    if (auto found = check(config)) return found;
  for (const KernelTable& table : config.kernels)
    if (auto found = check_table(config, &table)) return found;
  // Tables may say something else of one of the two, which the rest of them then does not contradict.
  return config.kernels.empty() ? check_table(config, nullptr) : std::nullopt;
}

}  // namespace klap::settings
