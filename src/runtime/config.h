// Settings: KLAP_* environment variables and the TOML file KLAP_CONFIG names, merged once per process.
//
// Precedence: environment over a kernel's own table over [defaults] over the built-in default. A kernel table
// matches the mangled or the demangled name by glob; for each setting, the first matching table in file order
// that has it wins. A wrong file or value never stops the program: it is reported with its place and the
// nearest valid spelling, and that setting keeps its default.
//
//     [defaults]
//     granularity = "grid"
//
//     [[kernel]]
//     name = "bfs_*"
//     granularity = "none"
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/module.h"

namespace klap::runtime {

struct KernelTable {
  std::string glob;  // against the mangled, then the demangled name
  std::optional<jit::Granularity> granularity;
  int line = 0;  // in the config file

  [[nodiscard]] bool matches(const std::string& mangled) const;
};

struct Config {
  bool disabled = false;              // KLAP_DISABLE
  std::string log_level = "warn";     // KLAP_LOG
  std::filesystem::path config_file;  // KLAP_CONFIG, empty when unset
  std::filesystem::path dump_dir;     // KLAP_DUMP_DIR, absolute; empty: no dump
  std::filesystem::path stats_file;   // KLAP_STATS, absolute; empty: no statistics; "-" for standard error
  bool cache_disabled = false;        // KLAP_CACHE_DISABLE
  std::filesystem::path cache_dir;    // KLAP_CACHE_DIR or the user's cache folder; empty: there is none
  uint64_t cache_max_bytes = uint64_t{1} << 30;                   // KLAP_CACHE_MAX_SIZE
  std::optional<jit::Granularity> environment_granularity;        // KLAP_GRANULARITY
  jit::Granularity default_granularity = jit::Granularity::Grid;  // [defaults] granularity in the file
  std::vector<KernelTable> kernels;                               // [[kernel]] tables in file order
  std::vector<std::string> problems;                              // one line each, ready for the log

  // The granularity for parent kernel `mangled`, after precedence.
  [[nodiscard]] jit::Granularity granularity_for(const std::string& mangled) const;
};

using Environment = std::function<const char*(const char* name)>;

// Reads everything. Never throws: what is wrong ends in `problems`. `environment` defaults to secure_getenv,
// which ignores the variables in set-uid programs; then KLAP_* variables that look misspelt are reported too.
Config load_config(const Environment& environment = {});

// Applies the text of a config file; `name` is for messages. Never throws.
void apply_config_text(Config& config, std::string_view text, const std::string& name);

// "grid" -> Granularity::Grid; nothing for a name that is none.
std::optional<jit::Granularity> parse_granularity(std::string_view name);

// Shell-style glob with * and ?; kernel names are full of brackets, so [ ] are ordinary characters.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace klap::runtime
