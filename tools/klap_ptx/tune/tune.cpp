// klap-ptx tune runs a program with many settings, and keeps those that make its kernels faster.
//
// It needs a GPU, and no more of the program than that it can be run again and again. Results are checked by
// the program's exit code, which must be that of a native run or 0, and by a command of the user's. A setting
// with a wrong run is dropped. Settings that change nothing about the program's launches are not tried:
// `explain` tells beforehand.
//
// Each configuration that was timed runs once more, to read performance counters (KLAP_COUNTERS).
//
// Each setting is tried alone first. Then several are tried together, as search.h says, and all that are left
// if asked to. The fastest ones run some more times, and what still saves time then is confirmed beside runs
// at the default.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "jit/cache/cache_folder.h"
#include "klap_ptx/input.h"
#include "klap_ptx/tune/checked_runs.h"
#include "klap_ptx/tune/config_text.h"
#include "klap_ptx/tune/pictures.h"
#include "klap_ptx/tune/report.h"
#include "runtime/remark_json.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

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
        nlohmann::json verdict = runtime::to_json(remark);
        verdict.erase("notes");
        text += verdict.dump();
      }
    });
  } catch (const Error&) {
    return std::nullopt;
  }
  return text;
}

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options) : options_(options), runs_(options) {
    report_.options = &options;
    make_picture_folder();
    if (!options_.out.empty()) require_folder_of(options_.out);
  }

  void tune() {
    const RunOutcome native = runs_.run_natively();
    report_.native_seconds = native.seconds;
    runs_.run_first(native);
    measure_default();
    choose_candidates();
    try_alone();
    try_together();
    if (options_.exhaustive) try_all();
    run_fastest_again();
    choose();
    if (report_.has_choice()) confirm_choices();
    if (report_.has_choice()) check_choices();
    write_choices();
    report_.seconds = elapsed();
    // Settings alone tell nothing about each other.
    for (const auto& [parent, search] : report_.searches)
      report_.findings[parent] = find(search.samples(), report_.tried, report_.samples != 0);
    for (const auto& [parent, counted] : counted_)
      report_.counter_findings[parent] =
          find_by_counters(report_.searches.at(parent).samples(), counted, report_.tried);
    const std::vector<Picture> pictures = draw_pictures();
    options_.json ? print_json(to_json(report_)) : print_report(report_);
    for (const Picture& picture : pictures)
      write_file(fs::path(options_.pictures) / picture.file, picture.svg);
  }

 private:
  // A folder that cannot be made is better known before all runs than behind them.
  void make_picture_folder() const {
    if (options_.pictures.empty()) return;
    try {
      make_folder(options_.pictures);
    } catch (Error& error) {
      error.fix("--pictures DIR with a folder that can be written");
      throw;
    }
  }

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  void measure_default() {
    const double begin = elapsed();
    const Measured defaults = runs_.measure({}, options_.runs, "the default");
    default_seconds_ = elapsed() - begin;
    if (defaults.times.empty()) wrong_with_library(defaults.problem);
    if (defaults.times.front().empty()) runs_.throw_unreplaced();
    report_.default_runs = defaults.times;
    for (const ParentTimes& run : defaults.times)
      for (const auto& [parent, ms] : run)
        report_.searches.try_emplace(parent, report_.tried).first->second.measured({}, ms);
    report_.sizes = runs_.count_sizes();
    count({}, all_with({}));
  }

  // Each kernel with the same configuration.
  [[nodiscard]] std::vector<Choice> all_with(const Configuration& configuration) const {
    std::vector<Choice> out;
    for (const auto& [parent, search] : report_.searches) out.push_back({parent, 0, configuration, 0});
    return out;
  }

  // Reads performance counters in a run of its own, in which each of these kernels has its configuration. So
  // runs with times stay as they are. Where the first one has no counters, none is tried again.
  void count(const Variables& setting, const std::vector<Choice>& choices) {
    const auto is_known = [this](const Choice& choice) {
      const auto of_parent = counted_.find(choice.parent);
      return of_parent != counted_.end() && of_parent->second.contains(choice.best);
    };
    if (!counts_ || std::ranges::all_of(choices, is_known)) return;
    const Counted found = runs_.count(setting, options_.counters);
    const bool is_first = counted_.empty();
    if (is_first) report_.counter_problems = found.problems;
    if (is_first && found.counters.empty()) {
      counts_ = false;
      return say(fmt::format("performance counters cannot be read: {}", fmt::join(found.problems, "; ")));
    }
    for (const Choice& choice : choices)
      if (const auto counters = found.counters.find(choice.parent); counters != found.counters.end())
        counted_[choice.parent].emplace(choice.best, counters->second);
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
      if (!after || seen.insert(*after).second) report_.tried.push_back(candidate);
    }
    say(fmt::format("{} of {} settings change something; {} runs each", report_.tried.size(),
                    candidates().size(), options_.runs));
  }

  void try_alone() {
    const double first_begin = elapsed();
    for (size_t i = 0; i < report_.tried.size(); ++i) {
      const double begin = elapsed();
      // Four more sets of runs confirm the choices and compare the whole program. They take about as long as
      // those at the default, however slow some settings are.
      const double needed = i == 0 ? 0 : 5 * default_seconds_;
      if (begin + needed > options_.seconds) {
        report_.not_tried = report_.tried.size() - i;
        report_.tried.resize(i);
        return say(fmt::format("{} settings are not tried: time is up", report_.not_tried));
      }
      const Candidate& candidate = report_.tried[i];
      report_.measured.push_back(runs_.measure(candidate.environment(), options_.runs, candidate.text()));
      for (auto& [parent, search] : report_.searches) note(search, parent, {i}, report_.measured.back());
      if (!report_.measured.back().times.empty()) count(candidate.environment(), all_with({i}));
      const double left = (elapsed() - first_begin) / static_cast<double>(i + 1) *
                          static_cast<double>(report_.tried.size() - i - 1);
      say(fmt::format("[{}/{}] {}: {:.1f} s, about {:.0f} s to go", i + 1, report_.tried.size(),
                      candidate.text(), elapsed() - begin, std::min(left, options_.seconds - elapsed())));
    }
  }

  // A kernel without a time was not replaced then.
  static void note(Search& search, const std::string& parent, const Configuration& configuration,
                   const Measured& measured) {
    bool has_time = false;
    for (const ParentTimes& run : measured.times) {
      const auto found = run.find(parent);
      if (found == run.end()) continue;
      search.measured(configuration, found->second);
      has_time = true;
    }
    if (!has_time) search.failed(configuration);
  }

  // Runs in which each of these kernels has a configuration of its own.
  void run_with(const std::vector<Choice>& choices, uint32_t runs, const std::string& name) {
    const Variables setting = with(choices);
    const Measured measured = runs_.measure(setting, runs, name);
    for (const Choice& choice : choices)
      note(report_.searches.at(choice.parent), choice.parent, choice.best, measured);
    if (!measured.times.empty()) count(setting, choices);
  }

  using Propose = std::optional<Configuration> (Search::*)();

  // Each run tries what is proposed for each kernel, until nothing is or time is up. At most so many runs;
  // returns their number.
  size_t try_proposed(Propose propose, size_t most, const std::string& name) {
    const double begin = elapsed();
    double each = 0;  // what follows takes about eight sets of runs
    size_t runs = 0;
    while (runs < most && elapsed() + 8 * options_.runs * each <= options_.seconds) {
      std::vector<Choice> proposed;
      for (auto& [parent, search] : report_.searches)
        if (const auto next = (search.*propose)()) proposed.push_back({parent, 0, *next, 0});
      if (proposed.empty()) break;
      run_with(proposed, 1, name);
      ++runs;
      each = (elapsed() - begin) / static_cast<double>(runs);
      say(fmt::format("[{}/{}] {}, {:.0f} of {:.0f} s: a launch takes {:.0f} % less at best", runs, most,
                      name, elapsed(), options_.seconds, 100 * best_gain()));
    }
    return runs;
  }

  void try_together() {
    report_.samples = try_proposed(&Search::next, options_.samples, "several settings together");
  }

  // Tries all that the search has not, once it is known what would have been chosen without that.
  void try_all() {
    run_fastest_again();
    uint64_t left = 0;
    for (const auto& [parent, search] : report_.searches) {
      report_.model_choices[parent] = {choice_of(parent, search).best, search.proposals()};
      const Search::Coverage coverage = search.coverage();
      left = std::max(left, coverage.all - coverage.tried);
    }
    report_.samples += try_proposed(&Search::next_untried, left, "one of all combinations");
    for (const auto& [parent, search] : report_.searches)
      if (const auto [tried, all] = search.coverage(); tried < all)
        say(fmt::format("{} of {} combinations were tried for {}: time is up", tried, all, demangle(parent)));
  }

  // The gain of the kernel that gains the most, as a part of its time at the default.
  [[nodiscard]] double best_gain() const {
    double best = 0;
    for (const auto& [parent, search] : report_.searches) {
      const auto before = search.middle_ms({});
      if (before) best = std::max(best, 1 - search.samples().front().ms / *before);
    }
    return best;
  }

  // A single run may have been lucky.
  void run_fastest_again() {
    constexpr size_t kFastest = 3;
    std::map<std::string, std::vector<Sample>> ranked;
    for (const auto& [parent, search] : report_.searches) ranked[parent] = search.samples();
    for (size_t rank = 0; rank < kFastest; ++rank) {
      std::vector<Choice> again;
      for (const auto& [parent, samples] : ranked) {
        // Settings that were tried alone have had their runs.
        if (rank < samples.size() && samples[rank].configuration.size() > 1)
          again.push_back({parent, 0, samples[rank].configuration, 0});
      }
      if (!again.empty()) run_with(again, options_.runs, "the fastest again");
    }
  }

  static Choice choice_of(const std::string& parent, const Search& search) {
    const double default_ms = *search.middle_ms({});
    const Sample best = *search.best();
    const bool is_better = best.ms <= (1 - kLeastGain) * default_ms;
    return {parent, default_ms, is_better ? best.configuration : Configuration(),
            is_better ? best.ms : default_ms};
  }

  void choose() {
    for (const auto& [parent, search] : report_.searches)
      report_.choices.push_back(choice_of(parent, search));
  }

  [[nodiscard]] std::string config_of(const std::vector<Choice>& choices) const {
    return config_text(choices, report_.tried, fmt::format("{}", fmt::join(options_.command, " ")));
  }

  // The file that is asked for may be there, and may be the one in force. So it is written once, at the end.
  [[nodiscard]] std::string config_before() const {
    const char* const given = std::getenv("KLAP_CONFIG");
    if (given == nullptr || !fs::exists(given)) return "";
    return "\n# What was in force before:\n" + read_file(given);
  }

  [[nodiscard]] Variables with(const std::vector<Choice>& choices) const {
    write_file(runs_.file("klap.toml"), config_of(choices) + config_before());
    return {{"KLAP_CONFIG", runs_.file("klap.toml")}};
  }

  [[nodiscard]] bool is_original(const Choice& choice) const {
    return choice.best.size() == 1 && report_.tried[choice.best.front()].is_original();
  }

  // Runs with the choices. Kernels that are left have no times there, so they are measured apart.
  [[nodiscard]] Measured measure_choices() {
    Measured chosen = runs_.measure(with(report_.choices), options_.runs, "the best settings together");
    const auto is_left = [this](const Choice& choice) { return is_original(choice); };
    if (chosen.times.empty() || std::ranges::none_of(report_.choices, is_left)) return chosen;
    const Measured originals =
        runs_.measure({{"KLAP_GUARD", "original"}}, options_.runs, "kernels as they are");
    for (const Choice& choice : report_.choices) {
      if (!is_original(choice)) continue;
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
    confirm(report_.choices, runs_.measure({}, options_.runs, "the default again").times, chosen.times);
  }

  // Runs the whole program with and without the choices, in turns.
  void check_choices() {
    const Variables tuned = with(report_.choices);
    for (uint32_t i = 0; i <= options_.runs; ++i) {
      for (const bool is_tuned : {false, true}) {
        const auto [outcome, problem] = runs_.run(is_tuned ? tuned : Variables());
        if (!problem.empty() && is_tuned) return give_up_choices(problem);
        if (i > 0)  // the first ones may build
          (is_tuned ? report_.tuned_seconds : report_.default_seconds).push_back(outcome.seconds);
      }
    }
  }

  void give_up_choices(const std::string& problem) {
    say(fmt::format("the settings together are wrong ({}), so none is written", problem));
    for (Choice& choice : report_.choices) choice.best.clear();
  }

  // For later runs of the program, and as a config file where one is asked for. Later runs may launch more,
  // and CUDA may lose launches. So that a kernel is left as it is stands only in the config file. So do
  // choices that make the program as a whole slower. Where nothing is better, nothing of an earlier tuning
  // stays.
  void write_choices() {
    if (report_.has_choice() && !options_.out.empty())
      write_file(options_.out, config_of(report_.choices) + config_before());
    std::vector<Choice> kept = report_.choices;
    std::erase_if(kept, [this](const Choice& choice) { return choice.best.empty() || is_original(choice); });
    if (report_.slows_program()) kept.clear();
    if (runs_.tuned_files().empty()) return;
    const fs::path cache = load_policy({}).cache_dir;
    const jit::CacheFolder folder = jit::CacheFolder::open(cache);
    for (const std::string& name : runs_.tuned_files()) {
      if (kept.empty()) {
        folder.remove(name);
      } else {
        folder.write(name, config_of(kept));
        report_.kept_in.push_back(cache / name);
      }
    }
  }

  // The pictures of all kernels, if they are asked for. The report names their files.
  std::vector<Picture> draw_pictures() {
    std::vector<Picture> all;
    if (options_.pictures.empty()) return all;
    for (const auto* const findings : {&report_.findings, &report_.counter_findings})
      for (const auto& [parent, found] : *findings)
        for (Picture& picture : draw(parent, found, report_.tried)) {
          report_.pictures[parent].push_back(fs::path(options_.pictures) / picture.file);
          all.push_back(std::move(picture));
        }
    return all;
  }

  const TuneOptions& options_;
  CheckedRuns runs_;
  TuneReport report_;
  std::map<std::string, std::map<Configuration, CounterValues>> counted_;  // by parent
  bool counts_ = !options_.counters.empty();
  double default_seconds_ = 0;  // of all runs at the default
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace

void tune(const TuneOptions& options) { Tuner(options).tune(); }

}  // namespace klap::tool
