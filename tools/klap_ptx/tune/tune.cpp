// klap-ptx tune runs a program with one setting after another, and writes a config file with those that make
// its kernels faster.
//
// It needs a GPU, and no more of the program than that it can be run again and again. Results are checked by
// the program's exit code, which must be that of a native run or 0, and by a command of the user's. A setting
// with a wrong run is dropped. Settings that change nothing about the program's launches are not tried:
// `explain` tells beforehand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "klap_ptx/input.h"
#include "klap_ptx/tune/candidates.h"
#include "klap_ptx/tune/choice.h"
#include "klap_ptx/tune/config_text.h"
#include "klap_ptx/tune/program_run.h"
#include "runtime/stats.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A folder for what runs write, removed at the end.
class RunFolder {
 public:
  RunFolder() {
    std::string name = fs::temp_directory_path() / "klap-tune-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::Io,
                  fmt::format("cannot make a folder in {}", fs::temp_directory_path().string()))
          .fix("set TMPDIR");
    path_ = name;
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

// The library that was built or installed with this program.
std::string find_library(const std::string& given) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<fs::path> places = {here / "../lib/libklap_jit.so", here / "../lib64/libklap_jit.so",
                                  here / "../lib/x86_64-linux-gnu/libklap_jit.so"};
  if (!given.empty()) places = {given};
  for (const fs::path& place : places) {
    if (fs::exists(place)) return fs::canonical(place);
  }
  throw Error(ErrorCode::Io,
              fmt::format("there is no library at {}", places.front().lexically_normal().string()))
      .fix("--library PATH of libklap_jit.so");
}

// The verdicts of `explain` on the program's launches with a setting; nothing of a program that holds no
// device code itself, such as a script.
std::optional<std::string> explained(const std::string& program, const Candidate* candidate) {
  PolicyOptions policy;
  if (candidate != nullptr) policy.values[std::string(candidate->variable)] = candidate->value;
  const settings::Config config = load_policy(policy);
  const jit::Request request = make_request(config, policy);
  std::string text;
  try {
    const container::File file = open_device_code(program);
    for_each_image(file, policy.sm, [&](const Image& image) {
      for (jit::SiteRemark& remark : jit::explain_module(image.program, request)) {
        // The notes say who asked for a setting, too, which changes no code.
        nlohmann::json json = runtime::to_json(remark);
        json.erase("notes");
        text += json.dump();
      }
    });
  } catch (const Error&) {
    return std::nullopt;
  }
  return text;
}

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options) : options_(options), library_(find_library(options.library)) {}

  void tune() {
    const RunOutcome native = run_natively();
    run_first(native);
    const Measured defaults = measure({}, "the default");
    if (defaults.times.empty()) wrong_with_library(defaults.problem);
    if (defaults.times.front().empty())
      throw Error(ErrorCode::Unsupported, "the library replaces none of the program's launches")
          .fix("klap-ptx explain says why");
    choose_candidates();
    try_candidates();
    choices_ = choose(defaults.times, times(), keys());
    try_pairs();
    if (has_choice()) confirm_choices();
    if (has_choice()) check_choices();
    if (has_choice()) write_config(options_.out);
    report(native, defaults);
  }

 private:
  struct Measured {
    SettingTimes times;
    std::string problem;  // of the run that was wrong, then there are no times
  };
  using Environment = std::map<std::string, std::string>;

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  void say(const std::string& line) const { fmt::print(stderr, "klap-ptx tune: {}\n", line); }

  // A program may be wrong natively: CUDA loses launches, which the library does not.
  RunOutcome run_natively() {
    const RunOutcome outcome = run_program({options_.command, {}, folder_.file("output"), {}});
    limit_ = std::chrono::duration<double>(10 + 10 * outcome.seconds);
    expected_code_ = outcome.exit_code;
    const std::string problem = check(outcome);
    say(fmt::format("natively {:.2f} s, exit code {}{}", outcome.seconds, outcome.exit_code,
                    problem.empty() ? "" : ", and " + problem));
    return outcome;
  }

  // The first run with the library, which builds what it runs. Its exit code is right if it is that of a
  // native run, or 0.
  void run_first(const RunOutcome& native) {
    const RunOutcome outcome =
        run_program({options_.command, environment({}), folder_.file("output"), limit_});
    if (outcome.exit_code == 0 && !outcome.is_killed) expected_code_ = 0;
    const std::string problem = check(outcome);
    if (!problem.empty()) wrong_with_library(problem);
    if (native.exit_code != expected_code_)
      say(fmt::format("with the library its exit code is {}", expected_code_));
  }

  [[noreturn]] static void wrong_with_library(const std::string& problem) {
    throw Error(ErrorCode::Unsupported, "with the library the program is wrong: " + problem)
        .fix("run it with KLAP_LOG=info and see what it says");
  }

  // The reason why a run is wrong; empty if it is right.
  [[nodiscard]] std::string check(const RunOutcome& outcome) const {
    if (outcome.is_killed) return fmt::format("it did not end in {:.0f} s", limit_.count());
    if (outcome.exit_code != expected_code_)
      return fmt::format("exit code {} instead of {}", outcome.exit_code, expected_code_);
    if (options_.check.empty()) return "";
    const ProgramRun check{
        {"sh", "-c", options_.check, "sh", folder_.file("output")}, {}, folder_.file("check"), {}};
    const int code = run_program(check).exit_code;
    return code == 0 ? "" : fmt::format("the check ends with {}", code);
  }

  [[nodiscard]] Environment environment(const Environment& setting) const {
    Environment all = setting;
    const char* const preloaded = std::getenv("LD_PRELOAD");
    all["LD_PRELOAD"] = preloaded != nullptr && *preloaded != '\0' ? library_ + ":" + preloaded : library_;
    all.try_emplace("KLAP_GUARD", "off");
    return all;
  }

  // Each run's times with that setting, which has that name in messages.
  Measured measure(const Environment& setting, const std::string& name) const {
    Environment all = environment(setting);
    all["KLAP_TIMING"] = "1";
    all["KLAP_COUNT_CHILDREN"] = "0";
    all["KLAP_STATS"] = folder_.file("stats.json");
    Measured measured;
    for (uint32_t i = 0; i < options_.runs; ++i) {
      fs::remove(folder_.file("stats.json"));
      measured.problem = check(run_program({options_.command, all, folder_.file("output"), limit_}));
      if (!measured.problem.empty()) {
        say(fmt::format("{}: dropped, {}", name, measured.problem));
        measured.times.clear();
        break;
      }
      measured.times.push_back(parent_times());
    }
    return measured;
  }

  // The statistics of the last run have them.
  [[nodiscard]] ParentTimes parent_times() const {
    ParentTimes times;
    if (!fs::exists(folder_.file("stats.json"))) return times;
    const auto stats = nlohmann::json::parse(read_file(folder_.file("stats.json")), nullptr, false);
    if (stats.is_discarded() || !stats["gpu_ms"].is_object()) return times;
    const nlohmann::json& gpu = stats["gpu_ms"];
    for (const auto& [parent, launches] : gpu["launches"].items()) {
      const double ms = gpu["parents"].value(parent, 0.0) + gpu["consumers"].value(parent, 0.0);
      if (launches.get<double>() > 0) times[parent] = ms / launches.get<double>();
    }
    return times;
  }

  // Keeps the candidates that change something, and that the user has not set.
  void choose_candidates() {
    const auto before = explained(options_.command.front(), nullptr);
    std::set<std::string> seen;
    if (before) seen.insert(*before);
    for (const Candidate& candidate : candidates()) {
      if (std::getenv(std::string(candidate.variable).c_str()) != nullptr) continue;
      // CUDA may lose launches, and only a check of the results can tell.
      if (candidate.is_original() && options_.check.empty()) continue;
      const auto after = before ? explained(options_.command.front(), &candidate) : std::nullopt;
      if (!after || seen.insert(*after).second) tried_.push_back(candidate);
    }
    say(fmt::format("{} of {} settings change something; {} runs each", tried_.size(), candidates().size(),
                    options_.runs));
  }

  void try_candidates() {
    const double first_begin = elapsed();
    for (size_t i = 0; i < tried_.size(); ++i) {
      const double begin = elapsed();
      // Four more sets of runs measure pairs and the choices, and compare the whole program.
      const double each = i == 0 ? 0 : (begin - first_begin) / static_cast<double>(i);
      if (begin + 5 * each > options_.seconds) {
        not_tried_ = tried_.size() - i;
        tried_.resize(i);
        return say(fmt::format("{} settings are not tried: time is up", not_tried_));
      }
      const Candidate& candidate = tried_[i];
      measured_.push_back(measure(candidate.environment(), candidate.text()));
      const double left =
          (elapsed() - first_begin) / static_cast<double>(i + 1) * static_cast<double>(tried_.size() - i - 1);
      say(fmt::format("[{}/{}] {}: {:.1f} s, about {:.0f} s to go", i + 1, tried_.size(), candidate.text(),
                      elapsed() - begin, std::min(left, options_.seconds - elapsed())));
    }
  }

  // The two best settings of each kernel together, where they are of different kinds.
  void try_pairs() {
    if (std::ranges::none_of(choices_, [](const Choice& choice) { return choice.second.has_value(); }))
      return;
    keep_pairs(choices_, measure(with_choices(), "the two best settings of each kernel").times);
  }

  // No other setting changes a kernel that is left as it is.
  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const Candidate& candidate : tried_)
      out.emplace_back(candidate.is_original() ? std::string_view() : candidate.key);
    return out;
  }

  [[nodiscard]] std::vector<SettingTimes> times() const {
    std::vector<SettingTimes> out;
    for (const Measured& measured : measured_) out.push_back(measured.times);
    return out;
  }

  // The file that is asked for may be there, and may be the one in force. So it is written once, at the end.
  void write_config(const std::string& file) const {
    const char* const given = std::getenv("KLAP_CONFIG");
    const std::string before = given != nullptr && fs::exists(given) ? read_file(given) : "";
    write_file(file,
               config_text(choices_, tried_, fmt::format("{}", fmt::join(options_.command, " ")), before));
  }

  [[nodiscard]] Environment with_choices() const {
    write_config(folder_.file("klap.toml"));
    return {{"KLAP_CONFIG", folder_.file("klap.toml")}};
  }

  // Runs with the choices. Kernels that are left have no times there, so they are measured apart.
  [[nodiscard]] Measured measure_choices() const {
    Measured chosen = measure(with_choices(), "the best settings together");
    const auto is_left = [this](const Choice& choice) {
      return choice.setting && tried_[*choice.setting].is_original();
    };
    if (chosen.times.empty() || std::ranges::none_of(choices_, is_left)) return chosen;
    const Measured originals = measure({{"KLAP_GUARD", "original"}}, "kernels as they are");
    for (const Choice& choice : choices_) {
      if (!is_left(choice)) continue;
      for (size_t run = 0; run < originals.times.size(); ++run) {
        const auto found = originals.times[run].find(choice.parent);
        if (found != originals.times[run].end()) chosen.times[run].insert(*found);
      }
    }
    return chosen;
  }

  // Measures the choices together, and the default again. Choices that are wrong together are given up.
  void confirm_choices() {
    const Measured chosen = measure_choices();
    if (chosen.times.empty()) return give_up_choices(chosen.problem);
    confirm(choices_, measure({}, "the default again").times, chosen.times);
  }

  // Runs the whole program with and without the choices, in turns.
  void check_choices() {
    const Environment with = environment(with_choices());
    const Environment without = environment({});
    for (uint32_t i = 0; i <= options_.runs; ++i) {
      for (const bool is_tuned : {false, true}) {
        const RunOutcome outcome =
            run_program({options_.command, is_tuned ? with : without, folder_.file("output"), limit_});
        const std::string problem = check(outcome);
        if (!problem.empty() && is_tuned) return give_up_choices(problem);
        if (i > 0) (is_tuned ? tuned_seconds_ : default_seconds_).push_back(outcome.seconds);  // 0: builds
      }
    }
  }

  void give_up_choices(const std::string& problem) {
    say(fmt::format("the settings together are wrong ({}), so none is written", problem));
    for (Choice& choice : choices_) {
      choice.setting.reset();
      choice.second.reset();
    }
  }

  [[nodiscard]] bool has_choice() const {
    return std::ranges::any_of(choices_, [](const Choice& choice) { return choice.setting.has_value(); });
  }

  void report(const RunOutcome& native, const Measured& defaults) const {
    if (options_.json) return print_json(to_json(native, defaults));
    for (const Choice& choice : choices_) {
      fmt::print("{}: {:.4f} ms a launch", demangle(choice.parent), choice.default_ms);
      if (choice.setting) {
        fmt::print(", {:.4f} with {}{} ({:.0f} % less)\n", choice.best_ms, tried_[*choice.setting].text(),
                   choice.second ? " and " + tried_[*choice.second].text() : "",
                   100 * (1 - choice.best_ms / choice.default_ms));
      } else {
        fmt::print(", which no setting makes {:.0f} % shorter\n", 100 * kLeastGain);
      }
    }
    if (!has_choice()) return fmt::print("No setting is better, so nothing is written\n");
    fmt::print("The program takes {:.3f} s with these settings, {:.3f} without, {:.3f} natively\n",
               middle(tuned_seconds_), middle(default_seconds_), native.seconds);
    fmt::print("written to {}; use it with KLAP_CONFIG={}\n", options_.out, options_.out);
  }

  [[nodiscard]] nlohmann::json to_json(const RunOutcome& native, const Measured& defaults) const {
    nlohmann::json settings = nlohmann::json::array(), kernels = nlohmann::json::array();
    for (size_t i = 0; i < tried_.size(); ++i)
      settings.push_back({{"key", tried_[i].key},
                          {"value", tried_[i].value},
                          {"problem", measured_[i].problem},
                          {"runs", measured_[i].times}});
    for (const Choice& choice : choices_) {
      kernels.push_back({{"name", choice.parent},
                         {"default_ms", choice.default_ms},
                         {"best_ms", choice.best_ms},
                         {"key", nullptr},
                         {"value", nullptr},
                         {"second_key", nullptr},
                         {"second_value", nullptr}});
      if (!choice.setting) continue;
      kernels.back()["key"] = tried_[*choice.setting].key;
      kernels.back()["value"] = tried_[*choice.setting].value;
      if (!choice.second) continue;
      kernels.back()["second_key"] = tried_[*choice.second].key;
      kernels.back()["second_value"] = tried_[*choice.second].value;
    }
    return {{"command", options_.command},
            {"config", has_choice() ? nlohmann::json(options_.out) : nlohmann::json()},
            {"seconds",
             {{"all", elapsed()},
              {"native", native.seconds},
              {"default", default_seconds_},
              {"tuned", tuned_seconds_}}},
            {"default_runs", defaults.times},
            {"settings", std::move(settings)},
            {"not_tried", not_tried_},
            {"kernels", std::move(kernels)}};
  }

  const TuneOptions& options_;
  const std::string library_;
  const RunFolder folder_;
  const Clock::time_point begin_ = Clock::now();
  int expected_code_ = 0;
  std::chrono::duration<double> limit_{};
  std::vector<Candidate> tried_;
  size_t not_tried_ = 0;
  std::vector<Measured> measured_;  // of those that were tried
  std::vector<Choice> choices_;
  std::vector<double> default_seconds_, tuned_seconds_;
};

}  // namespace

void tune(const TuneOptions& options) { Tuner(options).tune(); }

}  // namespace klap::tool
