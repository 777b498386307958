// What the keys of the two caches cover: every setting and every field of a request and a program. A module
// that was built for other settings must not be found, in this process or on the disk.
#include <array>
#include <set>

#include "fixture.h"
#include "runtime/load/module_cache.h"
#include "settings/config.h"
#include "settings/table.h"
#include "support/error.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

using settings::Config;
using settings::Section;
using settings::Setting;
using settings::SettingType;

struct Keys {
  std::string disk, memory;
};

SiteRemark launch() {
  SiteRemark remark;
  remark.parent = "parent";
  remark.child = "child";
  return remark;
}

Keys keys_of(const Program& program, const Request& request) {
  return {make_cache_key(program, request).hash, memory_key(program, request, {launch()})};
}

// As the library and the C API make a request.
Request request_for(const Config& config) {
  Request request;
  request.setting = [config](std::string_view key, const std::string& parent, const std::string& child) {
    return config.setting_for(key, parent, child);
  };
  request.device_runtime = config.device_runtime;
  request.configuration = settings::canonical_text(config);
  return request;
}

// Two values that a setting takes.
std::array<std::string, 2> two_values(const Setting& setting) {
  switch (setting.type) {
    case SettingType::Choice:
      return {std::string(setting.choices[0]), std::string(setting.choices[1])};
    case SettingType::Boolean:
      return {"0", "1"};
    case SettingType::Size:
      return {"64M", "128M"};
    case SettingType::Path:
      return {"/one", "/two"};
    case SettingType::Glob:
      return {"parent", "p*"};
    case SettingType::Count:
    case SettingType::Share:
    case SettingType::Threads:
    case SettingType::Blocks:
    case SettingType::Threshold:
      break;
    case SettingType::Metrics:
      return {"a.sum", "a.sum,b.pct"};
    case SettingType::Optimise:
      return {"-flatten", "unroll=2"};
  }
  return {"2", "4"};
}

// Settings that leave the code as it is: how much memory queues have, and where things are written to. One
// that is new counts as changing code until it is entered here.
bool changes_no_code(const Setting& setting) {
  static const std::set<std::string_view> names = {"pool_bytes",          "total_bytes",
                                                   "concurrency",         "pool",
                                                   "KLAP_CONFIG",         "KLAP_LOG",
                                                   "KLAP_LOG_FILE",       "KLAP_DISABLE",
                                                   "KLAP_DUMP_DIR",       "KLAP_STATS",
                                                   "KLAP_COUNT_CHILDREN", "KLAP_TIMING",
                                                   "KLAP_SIZES",          "KLAP_PROFILER_RANGES",
                                                   "KLAP_COUNTERS",       "KLAP_CACHE_DIR",
                                                   "KLAP_CACHE_MAX_SIZE", "KLAP_CACHE_DISABLE",
                                                   "KLAP_GUARD",          "KLAP_TUNE",
                                                   "KLAP_ASYNC"};
  return names.contains(setting.key.empty() ? setting.variable : setting.key);
}

// A single optimisation is switched by the row `optimise`.
Config from_variable(const Setting& setting, const std::string& value) {
  const bool is_switch = setting.kind == settings::Kind::Optimisation;
  const std::string text = is_switch ? std::string(setting.key) + "=" + value : value;
  const std::string_view variable = is_switch ? "KLAP_OPTIMISE" : setting.variable;
  return settings::load_config([&](const char* name) { return variable == name ? text.c_str() : nullptr; });
}

Config from_file(const std::string& table, const Setting& setting, const std::string& value) {
  const bool bare = setting.type == SettingType::Count || setting.type == SettingType::Share ||
                    setting.type == SettingType::Blocks || setting.type == SettingType::Threads;
  Config config = settings::load_config([](const char*) -> const char* { return nullptr; });
  const std::string quote = bare ? "" : "\"", key(setting.key);
  const bool is_switch = setting.kind == settings::Kind::Optimisation;
  const std::string line =
      is_switch ? "optimise = \"" + key + "=" + value + "\"" : key + " = " + quote + value + quote;
  settings::apply_config_text(config, table + line + "\n", "test.toml");
  EXPECT_TRUE(config.problems.empty()) << config.problems.front();
  return config;
}

void expect_keys(const Setting& setting, const Config& one, const Config& two, const std::string& where) {
  const Keys a = keys_of({}, request_for(one)), b = keys_of({}, request_for(two));
  const auto expect = [&](const std::string& x, const std::string& y, const char* cache) {
    EXPECT_EQ(x == y, changes_no_code(setting)) << where << ": " << setting.name() << ", cache " << cache;
  };
  expect(a.disk, b.disk, "on the disk");
  expect(a.memory, b.memory, "in the process");
}

TEST(Keys, TwoValuesOfEverySettingGiveTwoKeysInBothCaches) {
  for (const Setting& setting : settings::table()) {
    const auto [one, two] = two_values(setting);
    if (!setting.variable.empty() || setting.kind == settings::Kind::Optimisation)
      expect_keys(setting, from_variable(setting, one), from_variable(setting, two), "environment");
    for (const Section section : setting.sections) {
      if (setting.key == "name" || setting.key == "child") continue;
      const std::string table =
          section == Section::Defaults ? "[defaults]\n" : "[[kernel]]\nname = \"parent\"\n";
      expect_keys(setting, from_file(table, setting, one), from_file(table, setting, two), table);
    }
  }
}

Config from_tuning(const std::string& line) {
  Config config = settings::load_config([](const char*) -> const char* { return nullptr; });
  const std::string text = "[[kernel]]\nname = \"parent\"\n" + line + "\n";
  EXPECT_TRUE(settings::apply_tuned_text(config, text, "test.tuned").empty());
  return config;
}

// As in a config file, but who asks for a value is in the remarks, which are kept with the code.
TEST(Keys, TunedSettingsGiveOtherKeys) {
  const Setting& setting = *settings::find_key(Section::Kernel, "threshold");
  const Config none = from_tuning(""), one = from_tuning("threshold = 16"),
               two = from_tuning("threshold = 64");
  expect_keys(setting, none, one, "tuned");
  expect_keys(setting, one, two, "tuned");
  expect_keys(setting, one, from_file("[[kernel]]\nname = \"parent\"\n", setting, "16"), "a file");
}

// Not every caller says what its settings are as a text.
TEST(Keys, AnswersOfARequestAreInTheKeyInTheProcess) {
  std::set<std::string> keys;
  const auto add = [&](const Setting& row, const std::string& value) {
    Request request;
    request.setting = test::given({{std::string(row.key), value}});
    EXPECT_TRUE(keys.insert(keys_of({}, request).memory).second) << row.key << " " << value;
  };
  for (const Setting& row : settings::table()) {
    if (row.sections.empty() || changes_no_code(row) || row.key == "optimise") continue;
    // The runtime reads these.
    if (row.key == "dependent_launch" || row.key == "name" || row.key == "child") continue;
    for (const std::string& value : two_values(row)) add(row, value);
  }
}

struct OtherLinker : Linker {
  [[nodiscard]] std::string link(const std::vector<LinkInput>&,
                                 const std::vector<std::string>&) const override {
    return {};
  }
  [[nodiscard]] std::string_view name() const override { return "other"; }
};

TEST(Keys, EveryFieldOfARequestIsInBoth) {
  static const OtherLinker linker;
  const std::vector<std::pair<const char*, std::function<void(Request&)>>> in_both = {
      {"sm", [](Request& r) { r.sm = 80; }},
      {"work_queues", [](Request& r) { r.work_queues = false; }},
      {"two heads", [](Request& r) { r.double_buffered = false; }},
      {"warp_aggregation", [](Request& r) { r.warp_aggregation = false; }},
      {"slicing", [](Request& r) { r.slicing = false; }},
      {"blocks", [](Request& r) { r.blocks = false; }},
      {"promoting", [](Request& r) { r.promoting = false; }},
      {"by sizes", [](Request& r) { r.by_sizes = false; }},
      {"device runtime", [](Request& r) { r.device_runtime = false; }},
      {"debug units", [](Request& r) { r.debug_units = true; }},
      {"linker", [](Request& r) { r.linker = &linker; }},
      {"configuration", [](Request& r) { r.configuration = "granularity none"; }}};
  std::set<std::string> disk, memory;
  const auto add = [&](const char* field, const Request& request) {
    const Keys keys = keys_of({}, request);
    EXPECT_TRUE(disk.insert(keys.disk).second) << field;
    EXPECT_TRUE(memory.insert(keys.memory).second) << field;
  };
  add("none", {});
  for (const auto& [field, change] : in_both) {
    Request request;
    change(request);
    add(field, request);
  }
}

TEST(Keys, EveryFieldOfAProgramIsInBoth) {
  Program program;
  program.units.resize(2);
  std::set<std::string> disk, memory;
  const auto add = [&] {
    const Keys keys = keys_of(program, {});
    EXPECT_TRUE(disk.insert(keys.disk).second);
    EXPECT_TRUE(memory.insert(keys.memory).second);
  };
  add();
  program.device_runtime_archive = "/lib/libcudadevrt.a", add();
  program.built_in_runtime = true, add();
  program.units[0].ptx = "ptx", add();
  std::swap(program.units[0], program.units[1]), add();
  std::swap(program.units[0].cubin, program.units[1].ptx), add();
  program.units[1].options = "-O1", add();
  program.units[1].name = "unit 1", add();
  program.units[1].launches = true, add();
  program.units[1].is_device_runtime = true, add();
  program.units[1].cubin_suffix = 'a', add();
  EXPECT_THAT(make_cache_key(program, {}).text, testing::HasSubstr(build_id()));
}

}  // namespace
}  // namespace klap::jit
