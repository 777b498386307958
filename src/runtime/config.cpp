// Environment variables, precedence and kernel matching. The config file's text is config_file.cpp's
// business.
#include "runtime/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/settings_table.h"
#include "runtime/spelling.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {

namespace {

// Relative paths are meant from where the program was started; it may change its folder before they are used.
std::filesystem::path anchored(const std::string& text) {
  std::error_code ec;
  const std::filesystem::path path = std::filesystem::absolute(text, ec);
  return ec ? std::filesystem::path(text) : path;
}

class VariableReader {
 public:
  VariableReader(const Environment& environment, std::vector<std::string>& problems)
      : environment_(environment), problems_(problems) {}

  // The variable's value where it is set, not empty and valid; what is not valid is reported.
  std::optional<std::string> operator()(const char* name) const {
    const char* const value = environment_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    if (const auto problem = check_value(*find_variable(name), name, value)) {
      problems_.emplace_back(problem->what());
      return std::nullopt;
    }
    return value;
  }

 private:
  const Environment& environment_;
  std::vector<std::string>& problems_;
};

// A variable like KLAP_GRANULARTY would otherwise be ignored without a word. Only near misses are reported:
// other software may use the prefix too.
void report_misspelt_variables(std::vector<std::string>& problems) {
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
}

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
  } catch (const Error& error) {
    config.problems.emplace_back(error.what());
  }
}

}  // namespace

Config load_config(const Environment& environment) {
  Config config;
  const Environment get = environment ? environment : [](const char* name) { return secure_getenv(name); };
  const VariableReader read(get, config.problems);
  if (const auto value = read("KLAP_DISABLE")) config.disabled = *parse_boolean(*value);
  if (const auto value = read("KLAP_LOG")) config.log_level = *value;
  if (const auto value = read("KLAP_DUMP_DIR")) config.dump_dir = anchored(*value);
  if (const auto value = read("KLAP_STATS")) config.stats_file = *value == "-" ? "-" : anchored(*value);
  if (const auto value = read("KLAP_CACHE_DISABLE")) config.cache_disabled = *parse_boolean(*value);
  if (const auto value = read("KLAP_CACHE_MAX_SIZE")) config.cache_max_bytes = *parse_size(*value);
  const auto cache_dir = read("KLAP_CACHE_DIR");
  config.cache_dir = cache_dir ? anchored(*cache_dir) : user_cache_folder(get);
  if (const auto value = read("KLAP_GRANULARITY")) config.environment_granularity = parse_granularity(*value);
  if (const auto value = read("KLAP_CONFIG")) config.config_file = *value;
  if (!environment) report_misspelt_variables(config.problems);
  if (!config.config_file.empty()) apply_config_file(config);
  return config;
}

std::optional<jit::Granularity> parse_granularity(std::string_view name) {
  for (const jit::Granularity granularity : {jit::Granularity::None, jit::Granularity::Grid}) {
    if (name == jit::to_string(granularity)) return granularity;
  }
  return std::nullopt;
}

bool KernelTable::matches(const std::string& mangled) const {
  return glob_match(glob, mangled) || glob_match(glob, demangle(mangled));
}

jit::Granularity Config::granularity_for(const std::string& mangled) const {
  if (environment_granularity) return *environment_granularity;
  for (const KernelTable& table : kernels) {
    if (table.granularity && table.matches(mangled)) return *table.granularity;
  }
  return default_granularity;
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

}  // namespace klap::runtime
