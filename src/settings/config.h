// Settings: KLAP_* environment variables and the TOML file KLAP_CONFIG names, merged once per process.
//
// Precedence: environment over a kernel's own table over [defaults] over what was tuned over what the program
// is annotated with (include/klap/annotate.cuh) over the built-in default. A kernel table matches the mangled
// or the demangled name by glob, and one with `child` only launches of such kernels; for each setting, the
// first matching table in file order that has it wins. A wrong file or value never stops the program: it is
// reported with its place and the nearest valid spelling, and that setting keeps its default.
//
//     [defaults]
//     granularity = "grid"
//
//     [[kernel]]
//     name = "bfs_*"
//     granularity = "none"
//
// Every value is kept as the text it was given as, checked, under its row of the settings table and with the
// place it came from; that is what `klap-ptx config` prints. Types come in where a value is asked for.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/granularity.h"
#include "settings/launch_options.h"
#include "settings/table.h"

namespace klap::settings {

// The value of a setting and where it came from.
struct Value {
  enum class From { Default, Environment, File, Program, Tuned };
  std::string text;
  From from = From::Default;
  std::string place = "default";  // "environment", "klap.toml:3"
};

// Values by the name or key of their row; the names are the table's own.
using Values = std::map<std::string_view, Value>;

struct KernelTable {
  std::string glob;        // against the mangled, then the demangled name
  std::string child_glob;  // the same for the launched kernel; empty: every one
  int line = 0;            // in the config file
  Values values;           // by key

  // `child` is the launched kernel; null: what is asked is not about one launch.
  [[nodiscard]] bool matches(const std::string& mangled, const std::string* child = nullptr) const;
};

enum class LinkerChoice { Auto, NvJitLink, Driver };

// Whether parents run as they are where that is faster, or always, and whether measurements are kept for
// later runs.
enum class GuardMode { Off, Process, On, Original };
enum class TuneMode { Off, Sizes, On };

struct Config {
  bool disabled = false;              // KLAP_DISABLE
  std::string log_level = "warn";     // KLAP_LOG
  std::filesystem::path log_file;     // KLAP_LOG_FILE, absolute; empty: standard error
  std::filesystem::path config_file;  // KLAP_CONFIG, empty when unset
  std::filesystem::path dump_dir;     // KLAP_DUMP_DIR, absolute; empty: no dump
  std::filesystem::path stats_file;   // KLAP_STATS, absolute; empty: no statistics; "-" for standard error
  bool counts_children = true;        // KLAP_COUNT_CHILDREN
  bool timing = false;                // KLAP_TIMING
  bool sizes = false;                 // KLAP_SIZES
  bool profiler_ranges = false;       // KLAP_PROFILER_RANGES
  std::vector<std::string> counters;  // KLAP_COUNTERS
  GuardMode guard = GuardMode::On;    // KLAP_GUARD
  TuneMode tune = TuneMode::On;       // KLAP_TUNE
  bool async = false;                 // KLAP_ASYNC
  LinkerChoice linker = LinkerChoice::Auto;  // KLAP_LINKER
  bool device_runtime = true;                // KLAP_DEVICE_RUNTIME
  bool cache_disabled = false;               // KLAP_CACHE_DISABLE
  std::filesystem::path cache_dir;  // KLAP_CACHE_DIR or the user's cache folder; empty: there is none
  uint64_t cache_max_bytes = uint64_t{1} << 30;  // KLAP_CACHE_MAX_SIZE
  Values environment;                            // variables that are set and valid, by variable
  Values defaults;                               // [defaults], by key
  std::vector<KernelTable> kernels;              // [[kernel]] tables in file order
  std::vector<KernelTable> tuned;                // those that tuning made for one program
  std::vector<std::string> problems;             // one line each, ready for the log

  // The value of a row after precedence: for parent kernel `mangled`, or without it for kernels that no table
  // names; for launches of `child`, or without it for what is not about one launch.
  [[nodiscard]] Value value(const Setting& setting, const std::string* mangled = nullptr,
                            const std::string* child = nullptr) const;
  // Like value(), but empty if nobody gives one and the default holds.
  [[nodiscard]] std::optional<Value> given(const Setting& setting, const std::string* mangled = nullptr,
                                           const std::string* child = nullptr) const;
  // Looks a setting up by its key or its optimisation, for the planner (jit::Request::setting).
  [[nodiscard]] std::optional<Given> setting_for(std::string_view key, const std::string& parent,
                                                 const std::string& child) const;

  // Settings of parent kernel `mangled` that the runtime reads, after precedence. `annotated`: what the
  // program is annotated with, 0 for nothing.
  [[nodiscard]] uint64_t pool_bytes_for(const std::string& mangled, uint64_t annotated = 0) const;
  [[nodiscard]] uint32_t concurrency_for(const std::string& mangled, const std::string& child,
                                         uint32_t annotated = 0) const;
  // Whether consumers may be launched before their parent is complete.
  [[nodiscard]] bool dependent_launch_for(const std::string& mangled) const;
  // Blocks of a promoted chain, likewise; 0 where nobody says.
  [[nodiscard]] uint32_t pool_for(const std::string& mangled, uint32_t annotated = 0) const;
  // All queues of a CUDA context; the largest number where there is no limit.
  [[nodiscard]] uint64_t total_bytes() const;
};

using Environment = std::function<const char*(const char* name)>;

// Reads everything. Never throws: what is wrong ends in `problems`. `environment` defaults to secure_getenv,
// which ignores the variables in set-uid programs: whoever starts one must not choose the files it writes.
// Then KLAP_* variables that look misspelt are reported too.
Config load_config(const Environment& environment = {});
// One line for each KLAP_* variable of this process that looks misspelt.
std::vector<std::string> misspelt_variables();

// Applies the text of a config file; `name` is for messages. Never throws.
void apply_config_text(Config& config, std::string_view text, const std::string& name);

// Adds the [[kernel]] tables of a file that `klap-ptx tune` made. Returns what is wrong with it, one line
// each.
std::vector<std::string> apply_tuned_text(Config& config, std::string_view text, const std::string& name);

// The settings that decide what becomes of a kernel, as text for the keys of caches. Settings that change no
// code are not in it, since each difference makes another entry.
std::string canonical_text(const Config& config);

// Keeps a valid value under `name`, the variable or key of its row, and the optimisations that it switches
// under theirs.
void keep_value(Values& values, std::string_view name, const Setting& setting, const Value& value);

// Level and destination of the log. A log file that cannot be written is one more problem.
void apply_log_settings(Config& config);

// A launcher that to the pipeline is "host" (readback.h).
inline constexpr std::string_view kHostReadback = "host-readback";

// "driver" -> LinkerChoice::Driver; nothing for a name that is none.
std::optional<LinkerChoice> parse_linker(std::string_view name);
// "process" -> GuardMode::Process; nothing for a name that is none.
std::optional<GuardMode> parse_guard(std::string_view name);
// "0" and "off" -> TuneMode::Off; likewise.
std::optional<TuneMode> parse_tune(std::string_view name);

// Shell-style glob with * and ?; kernel names are full of brackets, so [ ] are ordinary characters.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace klap::settings
