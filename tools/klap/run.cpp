// klap run starts a program with the library preloaded, and says at the end what became of its launches.
//
// Each process of the program leaves its statistics in a folder of its own, under its id and rank. So those
// of a program that forks, or of ranks that mpirun starts, can be added up.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "klap/child_process.h"
#include "klap/commands.h"
#include "klap/given_settings.h"
#include "klap/program.h"
#include "klap/report_files.h"
#include "klap/statistics.h"
#include "klap/summary.h"
#include "klap_ptx/command_line.h"
#include "klap_ptx/preload_library.h"
#include "klap_ptx/run_folder.h"
#include "settings/config.h"
#include "settings/contradictions.h"
#include "settings/values.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

constexpr int kCannotBegin = 125;  // as env and timeout say that it is they who failed

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A rank of a job tells which one it is, since all of them print at the same time.
void say(const std::string& line) {
  const std::string rank = with_process("%r");
  const std::string who = rank == with_process("%p") ? "klap" : fmt::format("klap, rank {}", rank);
  fmt::print(stderr, "{}: {}\n", who, line);
}

class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {}

  int run() {
    if (const FoundProgram found = find_program(options_.command[0]); !found.problem.empty()) {
      say(fmt::format("'{}' {}", options_.command[0], found.problem));
      return found.exit_code;
    }
    const std::string library = find_preload_library(options_.library);
    if (const std::string problem = library_problem(library); !problem.empty())
      throw Error(ErrorCode::Io, problem).at(library).fix("use the libklap_jit.so that belongs to this klap");
    if (!options_.report.empty()) require_folder_of(options_.report);
    set_settings();
    if (const auto problem = find_problem_of_settings()) {
      say(problem->what());
      return kBadUsage;
    }
    if (options_.compare) {
      run_natively();
      if (native_->was_asked_to_end) return native_->exit_code;
    }
    setenv("LD_PRELOAD", with_preloaded(library).c_str(), 1);
    if (!is_watched()) become(options_.command);
    const RunFolder folder;
    setenv("KLAP_STATS", folder.file("%p.%r").c_str(), 1);
    const Ended ended = run_in_foreground(options_.command);
    const std::vector<ProcessReport> reports = collect_reports(folder.path());
    const int exit_code = tell(ended, reports);
    keep(reports, ended);
    return exit_code;
  }

 private:
  // A file that the user asks klap for is a failure if it cannot be written, but the library only warns.
  void keep(std::vector<ProcessReport> reports, const Ended& ended) const {
    if (report_.empty()) return;
    for (ProcessReport& report : reports) report.statistics["run"] = about_run(ended);
    try {
      keep_reports(reports, report_);
    } catch (const Error& error) {
      if (!options_.report.empty()) throw;
      say(fmt::format("warning: KLAP_STATS: statistics not written: {}", error.what()));
    }
  }

  // The run as a whole, for klap report.
  [[nodiscard]] nlohmann::json about_run(const Ended& ended) const {
    nlohmann::json native;
    if (native_) native = {{"seconds", native_->seconds}, {"exit_code", native_->exit_code}};
    return {{"command", options_.command},
            {"seconds", ended.seconds},
            {"exit_code", ended.exit_code},
            {"is_native", options_.native},
            {"native", std::move(native)}};
  }

  // Otherwise this process can become the program.
  [[nodiscard]] bool is_watched() const {
    return !options_.quiet || options_.stats || options_.compare || options_.native || options_.profile ||
           !options_.report.empty();
  }

  void run_natively() {
    const std::string preloaded = variable("LD_PRELOAD"), others = preloaded_besides();
    others.empty() ? unsetenv("LD_PRELOAD") : setenv("LD_PRELOAD", others.c_str(), 1);
    const off_t input = lseek(STDIN_FILENO, 0, SEEK_CUR);
    native_ = run_in_foreground(options_.command);
    if (input >= 0) lseek(STDIN_FILENO, input, SEEK_SET);  // both runs read the same
    if (!preloaded.empty()) setenv("LD_PRELOAD", preloaded.c_str(), 1);
  }

  void set_settings() {
    if (!options_.config.empty()) setenv("KLAP_CONFIG", options_.config.c_str(), 1);
    if (options_.native || options_.profile) apply_setting("timing=1");
    if (options_.native) apply_setting("guard=original");
    if (options_.profile) apply_setting("sizes=1");
    for (const std::string& setting : options_.settings) apply_setting(setting);
    report_ = options_.report.empty() ? variable("KLAP_STATS") : options_.report;
  }

  // Returns why the program should not run with these settings. What is wrong with a single one is a warning
  // of the library.
  [[nodiscard]] std::optional<Error> find_problem_of_settings() const {
    settings::Config config = settings::load_config([this](const char* name) -> const char* {
      return is_watched() && std::string_view(name) == "KLAP_STATS" ? "-" : std::getenv(name);
    });
    for (const std::string& setting : options_.settings)
      if (const auto given = config.environment.find(name_in_environment(setting));
          given != config.environment.end())
        given->second.place = "--set";
    return settings::find_contradiction(config);
  }

  [[nodiscard]] int tell(const Ended& ended, const std::vector<ProcessReport>& reports) const {
    Statistics all;
    for (const ProcessReport& report : reports) all.add(report.statistics);
    // A file that was asked for and is not there needs a word, too.
    if (!options_.quiet || options_.stats || (all.processes == 0 && !options_.report.empty()))
      tell_summary(ended, all);
    return native_ ? tell_comparison(ended, all) : ended.exit_code;
  }

  void tell_summary(const Ended& ended, const Statistics& all) const {
    if (all.processes == 0) return say(why_no_statistics(ended));
    if (options_.stats) {
      fmt::print(stderr, "\n{}", full_summary(all));
    } else {
      for (const std::string& line : summary_lines(all)) say(line);
    }
  }

  [[nodiscard]] static std::string why_no_statistics(const Ended& ended) {
    if (settings::parse_boolean(variable("KLAP_DISABLE")).value_or(false))
      return "KLAP_DISABLE is set, so the program ran as it is";
    if (ended.signal != 0)
      return fmt::format("signal {} ended the program before it could write statistics", ended.signal);
    return "there are no statistics: the program loaded no device code, or did not end by exit()";
  }

  [[nodiscard]] int tell_comparison(const Ended& preloaded, const Statistics& all) const {
    std::string compiled;
    if (all.compiled != 0)
      compiled =
          fmt::format("; {:.3f} s of that for compiling, which the next run does not", all.compile_ms / 1000);
    say(fmt::format("natively {:.3f} s, preloaded {:.3f} s{}: {:.2f} times as fast", native_->seconds,
                    preloaded.seconds, compiled, native_->seconds / std::max(preloaded.seconds, 1e-9)));
    const bool is_same = native_->exit_code == preloaded.exit_code;
    say(is_same ? fmt::format("exit code {} both times", preloaded.exit_code)
                : fmt::format("the exit codes differ: {} natively, {} preloaded", native_->exit_code,
                              preloaded.exit_code));
    return is_same || preloaded.was_asked_to_end ? preloaded.exit_code : 1;
  }

  const RunOptions& options_;
  std::optional<Ended> native_;
  std::string report_;
};

}  // namespace

int run(const RunOptions& options) {
  try {
    return Run(options).run();
  } catch (const Error& error) {
    say(error.what());
    return kCannotBegin;
  }
}

}  // namespace klap::tool
