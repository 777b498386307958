// Environment variables, precedence and kernel matching. The config file's text is config_file.cpp's
// business.
#include "settings/config.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "settings/spelling.h"
#include "settings/table.h"
#include "settings/values.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"
#include "support/log.h"

namespace klap::settings {

namespace {

// Relative paths are meant from where the program was started; it may change its folder before they are used.
std::filesystem::path anchored(const std::string& text) {
  std::error_code ec;
  const std::filesystem::path path = std::filesystem::absolute(text, ec);
  return ec ? std::filesystem::path(text) : path;
}

class VariableReader {
 public:
  VariableReader(const Environment& environment, Config& config)
      : environment_(environment), config_(config) {}

  // Keeps the values of all variables that are set, not empty and valid; what is not valid is reported.
  void read_all() {
    for (const std::string_view name : variables()) {
      const char* const value = environment_(std::string(name).c_str());
      if (value == nullptr || *value == '\0') continue;
      if (const auto problem = check_value(*find_variable(name), name, value)) {
        config_.problems.emplace_back(problem->what());
      } else {
        keep_value(config_.environment, name, *find_variable(name),
                   {value, Value::From::Environment, "environment"});
      }
    }
  }

  // The kept value of a variable.
  std::optional<std::string> operator()(std::string_view name) const {
    const auto found = config_.environment.find(name);
    return found == config_.environment.end() ? std::nullopt : std::optional(found->second.text);
  }

 private:
  const Environment& environment_;
  Config& config_;
};

// Where programs keep such things: $XDG_CACHE_HOME/klap, else ~/.cache/klap, else nowhere. Relative values of
// either are to be ignored, as the XDG specification says.
std::filesystem::path user_cache_folder(const Environment& environment) {
  const auto folder = [&](const char* name) {
    const char* const value = environment(name);
    return std::filesystem::path(value != nullptr && *value == '/' ? value : "");
  };
  if (const auto cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache / "klap";
  if (const auto home = folder("HOME"); !home.empty()) return home / ".cache" / "klap";
  return {};
}

void apply_config_file(Config& config) {
  try {
    apply_config_text(config, read_file(config.config_file), config.config_file.string());
  } catch (Error& error) {
    config.problems.emplace_back(error.fix("KLAP_CONFIG names this file").what());
  }
}

}  // namespace

Config load_config(const Environment& environment) {
  Config config;
  const Environment get = environment ? environment : [](const char* name) { return secure_getenv(name); };
  VariableReader read(get, config);
  read.read_all();
  if (const auto value = read("KLAP_DISABLE")) config.disabled = *parse_boolean(*value);
  if (const auto value = read("KLAP_LOG")) config.log_level = *value;
  if (const auto value = read("KLAP_LOG_FILE")) config.log_file = anchored(*value);
  if (const auto value = read("KLAP_DUMP_DIR")) config.dump_dir = anchored(*value);
  if (const auto value = read("KLAP_STATS")) config.stats_file = *value == "-" ? "-" : anchored(*value);
  const auto has_statistics = [&](const char* variable) {
    if (!config.stats_file.empty()) return true;
    config.problems.emplace_back(Error(ErrorCode::Config, "what it counts is a part of the statistics")
                                     .at(variable)
                                     .fix("name a file for them in KLAP_STATS")
                                     .what());
    return false;
  };
  if (const auto value = read("KLAP_LINKER")) config.linker = *parse_linker(*value);
  if (const auto value = read("KLAP_DEVICE_RUNTIME")) config.device_runtime = *parse_boolean(*value);
  if (const auto value = read("KLAP_COUNT_CHILDREN")) config.counts_children = *parse_boolean(*value);
  if (const auto value = read("KLAP_TIMING")) config.timing = *parse_boolean(*value);
  if (const auto value = read("KLAP_PROFILER_RANGES")) config.profiler_ranges = *parse_boolean(*value);
  if (const auto value = read("KLAP_SIZES"); value && *parse_boolean(*value))
    config.sizes = has_statistics("KLAP_SIZES");
  if (const auto value = read("KLAP_GUARD")) config.guard = *parse_guard(*value);
  if (const auto value = read("KLAP_COUNTERS"); value && has_statistics("KLAP_COUNTERS")) {
    config.counters = parse_metrics(*value);
    // To count a launch takes long, which must not pass for the time that it takes.
    if (config.guard != GuardMode::Original) config.guard = GuardMode::Off;
  }
  if (const auto value = read("KLAP_TUNE")) config.tune = *parse_tune(*value);
  if (const auto value = read("KLAP_ASYNC")) config.async = *parse_boolean(*value);
  if (const auto value = read("KLAP_CACHE_DISABLE")) config.cache_disabled = *parse_boolean(*value);
  if (const auto value = read("KLAP_CACHE_MAX_SIZE")) config.cache_max_bytes = *parse_size(*value);
  const auto cache_dir = read("KLAP_CACHE_DIR");
  config.cache_dir = cache_dir ? anchored(*cache_dir) : user_cache_folder(get);
  if (const auto value = read("KLAP_CONFIG")) config.config_file = *value;
  if (!environment) std::ranges::move(misspelt_variables(), std::back_inserter(config.problems));
  if (!config.config_file.empty()) apply_config_file(config);
  return config;
}

// A variable like KLAP_GRANULARTY would otherwise be ignored without a word. Only near misses are reported:
// other software may use the prefix too.
std::vector<std::string> misspelt_variables() {
  std::vector<std::string> problems;
  if (getauxval(AT_SECURE) != 0) return problems;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    const std::string_view name = assignment.substr(0, assignment.find('='));
    if (!name.starts_with("KLAP_") || find_variable(name) != nullptr) continue;
    if (const auto near = nearest(name, variables())) {
      problems.emplace_back(Error(ErrorCode::Config, "unknown environment variable")
                                .at(std::string(name))
                                .fix(fmt::format("did you mean {}?", *near))
                                .what());
    }
  }
  return problems;
}

void apply_log_settings(Config& config) {
  try {
    set_log_level(config.log_level);
    if (!config.log_file.empty()) set_log_file(with_process(config.log_file.string()));
  } catch (const Error& error) {
    config.problems.emplace_back(
        Error(ErrorCode::Config, fmt::format("the log stays on standard error: {}", error.what()))
            .at("KLAP_LOG_FILE")
            .what());
  }
}

std::optional<LinkerChoice> parse_linker(std::string_view name) {
  if (name == "auto") return LinkerChoice::Auto;
  if (name == "nvjitlink") return LinkerChoice::NvJitLink;
  if (name == "driver") return LinkerChoice::Driver;
  return std::nullopt;
}

std::optional<TuneMode> parse_tune(std::string_view name) {
  if (name == "sizes") return TuneMode::Sizes;
  const std::optional<bool> all = parse_boolean(name);
  if (!all) return std::nullopt;
  return *all ? TuneMode::On : TuneMode::Off;
}

std::optional<GuardMode> parse_guard(std::string_view name) {
  if (name == "off") return GuardMode::Off;
  if (name == "process") return GuardMode::Process;
  if (name == "on") return GuardMode::On;
  if (name == "original") return GuardMode::Original;
  return std::nullopt;
}

void keep_value(Values& values, std::string_view name, const Setting& setting, const Value& value) {
  values[name] = value;
  if (setting.type != SettingType::Optimise) return;
  const Optimisations asked = parse_optimise(value.text);
  for (const auto& [row, text] : std::get<0>(asked)) values[row->key] = {text, value.from, value.place};
}

bool KernelTable::matches(const std::string& mangled, const std::string* child) const {
  const auto fits = [](const std::string& pattern, const std::string& name) {
    return glob_match(pattern, name) || glob_match(pattern, demangle(name));
  };
  if (!fits(glob, mangled)) return false;
  return child_glob.empty() || (child != nullptr && fits(child_glob, *child));
}

std::optional<Value> Config::given(const Setting& setting, const std::string* mangled,
                                   const std::string* child) const {
  const auto find = [](const Values& values, std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second;
  };
  if (const Value* const set = find(environment, setting.name())) return *set;
  if (setting.key.empty()) return std::nullopt;
  const auto of_kernel = [&](const std::vector<KernelTable>& tables) -> const Value* {
    for (const KernelTable& table : tables) {
      if (mangled == nullptr) break;
      const Value* const set = find(table.values, setting.key);
      if (set != nullptr && table.matches(*mangled, child)) return set;
    }
    return nullptr;
  };
  for (const Value* const set : {of_kernel(kernels), find(defaults, setting.key), of_kernel(tuned)})
    if (set != nullptr) return *set;
  return std::nullopt;
}

Value Config::value(const Setting& setting, const std::string* mangled, const std::string* child) const {
  return given(setting, mangled, child).value_or(Value{std::string(setting.default_value)});
}

std::optional<Given> Config::setting_for(std::string_view key, const std::string& parent,
                                         const std::string& child) const {
  const Setting* const of_launch = find_of_launch(key);
  // The host-readback launcher is the baseline for comparisons, so the planner switches flattening and
  // thresholding off for it.
  if ((key == "flatten" || key == "threshold") &&
      value(*find_key(Section::Kernel, "launcher"), &parent, &child).text == kHostReadback)
    return Given{"off", "launcher host-readback"};
  const Setting& setting = of_launch != nullptr ? *of_launch : *find_key(Section::Defaults, key);
  const auto set = given(setting, &parent, &child);
  if (!set) return std::nullopt;
  // Not the line: rewritten modules are kept, with their remarks, for as long as the values stay.
  const std::string text =
      key == "launcher" && set->text == kHostReadback ? to_string(analysis::Launcher::Host) : set->text;
  return Given{text, set->from == Value::From::File ? "config file" : set->place};
}

// Only valid values were kept and the table's defaults are valid, so parsing below always succeeds.
uint64_t Config::pool_bytes_for(const std::string& mangled, uint64_t annotated) const {
  const Setting& setting = *find_key(Section::Kernel, "pool_bytes");
  if (annotated != 0 && !given(setting, &mangled)) return annotated;
  return *parse_size(value(setting, &mangled).text);
}

uint32_t Config::concurrency_for(const std::string& mangled, const std::string& child,
                                 uint32_t annotated) const {
  const Setting& setting = *find_key(Section::Kernel, "concurrency");
  if (annotated != 0 && !given(setting, &mangled, &child)) return annotated;
  return *parse_share(value(setting, &mangled, &child).text);
}

bool Config::dependent_launch_for(const std::string& mangled) const {
  return *parse_boolean(value(*find_optimisation("dependent_launch"), &mangled).text);
}

// A chain's only child is its parent.
uint32_t Config::pool_for(const std::string& mangled, uint32_t annotated) const {
  const Setting& setting = *find_key(Section::Kernel, "pool");
  if (annotated != 0 && !given(setting, &mangled, &mangled)) return annotated;
  return *parse_blocks(value(setting, &mangled, &mangled).text);
}

uint64_t Config::total_bytes() const {
  const auto set = given(*find_variable("KLAP_TOTAL_BYTES"));
  return set ? *parse_size(set->text) : std::numeric_limits<uint64_t>::max();
}

namespace {

// `optimise` itself stands there as the optimisations that it switches.
bool changes_no_code(std::string_view key) {
  return key == "name" || key == "child" || key == "pool_bytes" || key == "total_bytes" ||
         key == "concurrency" || key == "pool" || key == "optimise";
}

std::string canonical_text(const std::vector<KernelTable>& tables, const Setting& setting,
                           std::string_view relation) {
  std::string text;
  for (const KernelTable& table : tables) {
    const auto value = table.values.find(setting.key);
    if (value == table.values.end()) continue;
    text += fmt::format("{} {} {} {} {} {} {}\n", setting.key, value->second.text, relation,
                        table.glob.size(), table.glob, table.child_glob.size(), table.child_glob);
  }
  return text;
}

}  // namespace

std::vector<std::string> apply_tuned_text(Config& config, std::string_view text, const std::string& name) {
  Config file;
  apply_config_text(file, text, name);
  for (KernelTable& table : file.kernels) {
    for (auto& [key, value] : table.values) value = {value.text, Value::From::Tuned, "tuning"};
    config.tuned.push_back(std::move(table));
  }
  return std::move(file.problems);
}

std::string canonical_text(const Config& config) {
  std::string text;
  for (const Setting& setting : table()) {
    // All that kernels can have, so that no later one is forgotten, but for what changes no code.
    if (setting.key.empty() || changes_no_code(setting.key)) continue;
    const Value general = config.value(setting);
    // Remarks say who asked, and are kept with the code.
    text += fmt::format("{} {} {}\n", setting.key, general.text, static_cast<int>(general.from));
    if (config.environment.contains(setting.name())) continue;  // decides for all kernels
    text +=
        canonical_text(config.kernels, setting, "of") + canonical_text(config.tuned, setting, "tuned for");
  }
  // Two linkers make two images of the same code.
  text += fmt::format("linker {}\n", static_cast<int>(config.linker));
  return text;
}

// Greedy with one point of return, the last *: giving an earlier * more can never help. Linear in practice.
bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace klap::settings
