#include "klap_ptx/tune/checked_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "klap_ptx/input.h"
#include "klap_ptx/preload_library.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace fs = std::filesystem;

void wrong_with_library(const std::string& problem) {
  throw Error(ErrorCode::Unsupported, "with the library the program is wrong: " + problem)
      .fix("run it with KLAP_LOG=info and see what it says");
}

void say(const std::string& line) { fmt::print(stderr, "{} tune: {}\n", program_name(), line); }

CheckedRuns::CheckedRuns(const TuneOptions& options)
    : options_(options), library_(find_preload_library(options.library)) {}

RunOutcome CheckedRuns::run_natively() {
  const RunOutcome outcome = run_program({options_.command, {}, file("output"), {}});
  limit_ = std::chrono::duration<double>(10 + 10 * outcome.seconds);
  expected_code_ = outcome.exit_code;
  const std::string problem = check(outcome);
  say(fmt::format("natively {:.2f} s, exit code {}{}", outcome.seconds, outcome.exit_code,
                  problem.empty() ? "" : ", and " + problem));
  return outcome;
}

void CheckedRuns::run_first(const RunOutcome& native) {
  const RunOutcome outcome = run_program({options_.command, environment({}), file("output"), limit_});
  if (outcome.exit_code == 0 && !outcome.is_killed) expected_code_ = 0;
  const std::string problem = check(outcome);
  if (!problem.empty()) wrong_with_library(problem);
  if (native.exit_code != expected_code_)
    say(fmt::format("with the library its exit code is {}", expected_code_));
}

// The reason why a run is wrong; empty if it is right.
std::string CheckedRuns::check(const RunOutcome& outcome) const {
  if (outcome.is_killed) return fmt::format("it did not end in {:.0f} s", limit_.count());
  if (outcome.exit_code != expected_code_)
    return fmt::format("exit code {} instead of {}", outcome.exit_code, expected_code_);
  if (options_.check.empty()) return "";
  const ProgramRun check{{"sh", "-c", options_.check, "sh", file("output")}, {}, file("check"), {}};
  const int code = run_program(check).exit_code;
  return code == 0 ? "" : fmt::format("the check ends with {}", code);
}

// Settings that an earlier tuning found have no say in this one. Sizes do, as they will have then.
Variables CheckedRuns::environment(const Variables& setting) const {
  Variables all = setting;
  all["LD_PRELOAD"] = with_preloaded(library_);
  all.try_emplace("KLAP_GUARD", "off");
  all.try_emplace("KLAP_TUNE", "sizes");
  all.try_emplace("KLAP_COUNTERS", "");  // runs that are timed read none, and count no sizes
  all.try_emplace("KLAP_SIZES", "0");
  return all;
}

std::pair<RunOutcome, std::string> CheckedRuns::run(const Variables& setting) const {
  const RunOutcome outcome = run_program({options_.command, environment(setting), file("output"), limit_});
  return {outcome, check(outcome)};
}

Measured CheckedRuns::measure(const Variables& setting, uint32_t runs, const std::string& name) {
  Variables all = setting;
  all["KLAP_TIMING"] = "1";
  all["KLAP_COUNT_CHILDREN"] = "0";
  all["KLAP_STATS"] = file("stats.json");
  Measured measured;
  for (uint32_t i = 0; i < runs; ++i) {
    fs::remove(file("stats.json"));
    measured.problem = run(all).second;
    if (!measured.problem.empty()) {
      say(fmt::format("{}: dropped, {}", name, measured.problem));
      measured.times.clear();
      break;
    }
    measured.times.push_back(read_times());
  }
  return measured;
}

Counted CheckedRuns::count(const Variables& setting, const std::vector<std::string>& metrics) const {
  Variables all = setting;
  all["KLAP_COUNTERS"] = fmt::format("{}", fmt::join(metrics, ","));
  all["KLAP_COUNT_CHILDREN"] = "0";
  all["KLAP_STATS"] = file("stats.json");
  fs::remove(file("stats.json"));
  if (const std::string problem = run(all).second; !problem.empty())
    return {{}, {"a run that reads them is wrong: " + problem}};
  const nlohmann::json counters = statistics().value("counters", nlohmann::json());
  if (!counters.is_object()) return {{}, {"no launch was counted"}};
  return {counters["means"].get<ParentCounters>(), counters["problems"].get<std::vector<std::string>>()};
}

std::vector<ChildSizes> CheckedRuns::count_sizes() const {
  fs::remove(file("stats.json"));
  const std::string problem =
      run({{"KLAP_SIZES", "1"}, {"KLAP_TUNE", "0"}, {"KLAP_STATS", file("stats.json")}}).second;
  if (!problem.empty()) say("the sizes of children are not known: " + problem);
  return problem.empty() ? child_sizes(statistics()) : std::vector<ChildSizes>();
}

void CheckedRuns::throw_unreplaced() const {
  throw Error(ErrorCode::Unsupported, "the library replaces none of the program's launches")
      .fix(expected_code_ == 0
               ? program_name() + " explain says why"
               : fmt::format("the program fails with exit code {}; run it alone first", expected_code_));
}

// An empty object if the last run has written none.
nlohmann::json CheckedRuns::statistics() const {
  if (!fs::exists(file("stats.json"))) return nlohmann::json::object();
  nlohmann::json stats = nlohmann::json::parse(read_file(file("stats.json")), nullptr, false);
  return stats.is_object() ? stats : nlohmann::json::object();
}

ParentTimes CheckedRuns::read_times() {
  ParentTimes times;
  nlohmann::json stats = statistics();
  if (stats.empty()) return times;
  tuned_files_.clear();
  for (const nlohmann::json& module : stats["modules"])
    if (const std::string name = module.value("tuned_file", ""); !name.empty()) tuned_files_.push_back(name);
  if (!stats["gpu_ms"].is_object()) return times;
  const nlohmann::json& gpu = stats["gpu_ms"];
  for (const auto& [parent, launches] : gpu["launches"].items()) {
    const double ms = gpu["parents"].value(parent, 0.0) + gpu["consumers"].value(parent, 0.0);
    if (launches.get<double>() > 0) times[parent] = ms / launches.get<double>();
  }
  return times;
}

}  // namespace klap::tool
