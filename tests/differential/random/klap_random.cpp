// klap_random: random parent/child programs, natively and preloaded, until the time is up.
//
//   klap_random [--seconds N] [--seed S] [--programs N] [--mix MIX]... [--configurations A,B] [--out FOLDER]
//   klap_random --find-fault LIBRARY --programs N ...
//   klap_random --write FILE.json --seed S --mix MIX
//
// With --find-fault, the exit code is 0 if one of N programs fails with that library and not with the usual
// one. With --write, one program is written. The mix "waits" (random/waits/) also counts the programs that
// the library does not split where they wait, with the reasons, and fails if there are many.
//
// A program that fails is made as small as possible and written to FOLDER, with the command line that runs it
// again. Exit codes: 0 no failure, 1 failures, 2 wrong usage, 77 nothing to run on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <regex>

#include "case_file.h"
#include "jit/module.h"
#include "random/campaign.h"
#include "random/sample.h"
#include "support/error.h"
#include "tests/settings/given.h"

namespace klap::differential::random {

namespace {

uint64_t total(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

void print(const Tally& tally) {
  fmt::print(
      "{} programs in all configurations, {} runs; preloaded: {} sites rewritten, {} left, {} launches "
      "redirected\n",
      tally.programs, tally.runs, tally.rewritten, total(tally.left), tally.redirected);
  for (const auto& [reason, count] : tally.left) fmt::print("left: {} sites, {}\n", count, reason);
  for (const auto& [reason, count] : tally.refused) fmt::print("refused: {} programs, {}\n", count, reason);
  for (const std::string& failure : tally.failures) fmt::print("FAILED {}", failure);
}

// Programs that the library leaves as they are test nothing.
constexpr uint64_t kMostRefused = 5, kFewPrograms = 100;  // percent, of so many at least
bool are_many_refused(const Tally& tally) {
  return total(tally.refused) * 100 > std::max(tally.programs, kFewPrograms) * kMostRefused;
}

// The reason that stands behind the place and `left`. Places differ, and reasons are to be counted.
std::string without_place(std::string text, std::string_view left) {
  const size_t colon = text.find(left);
  text.erase(0, colon == std::string::npos ? text.find(": ") + 2 : colon + left.size());
  return std::regex_replace(text, std::regex(R"( ?\(?line [0-9:]+\)?|[0-9]+_[0-9]+|kernel[0-9])"), "");
}

// The reason why the library does not split the program's kernels where they wait.
std::string refusal(const Case& c) {
  constexpr std::string_view kNote = "not run as version 2: ", kLeft = "would be left: ";
  jit::Request request;
  request.sm = 90;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", "host"}});
  for (const jit::SiteRemark& remark : explain_module(jit::program_from_ptx(c.ptx, c.name), request)) {
    for (const std::string& note : remark.notes)
      if (note.starts_with(kNote)) return without_place(note.substr(kNote.size()), kLeft);
  }
  return "";
}

bool needs_emulator(const Plan& plan) {
  return std::ranges::any_of(plan.configurations, [](const Configuration& c) { return !c.is_gpu; });
}

// Whether the fault was found.
int print_find(const Plan& plan, const Tally& tally) {
  if (tally.failing.empty()) {
    fmt::print("the fault was not found by {} programs\n", tally.programs);
    return 1;
  }
  fmt::print("found by program {}\n{}", tally.failing[0] - plan.seed + 1, tally.failures[0]);
  return 0;
}

int run(const Plan& plan) {
  if (needs_emulator(plan) && !missing_emulator().empty()) {
    fmt::print(stderr, "klap_random: skipped: {}\n", missing_emulator());
    return 77;
  }
  const Tally tally = run_campaign(plan);
  if (tally.is_missing_device) {
    fmt::print(stderr, "klap_random: skipped: there is no device\n");
    return 77;
  }
  if (!plan.faulty_library.empty()) return print_find(plan, tally);
  print(tally);
  if (are_many_refused(tally))
    fmt::print("FAILED more than {} % of the programs are refused\n", kMostRefused);
  return tally.failures.empty() && !are_many_refused(tally) ? 0 : 1;
}

int main_or_throw(int argc, char** argv) {
  Plan plan;
  uint64_t seconds = 20;
  std::vector<std::string> mixes, settings;
  std::string configurations, write;
  plan.out = "failing";
  CLI::App app("Runs random parent/child programs");
  app.add_option("--seconds", seconds, "How long; running programs are waited for");
  app.add_option("--seed", plan.seed, "Of the first program");
  app.add_option("--programs", plan.programs, "How many at the most");
  app.add_option("--mix", mixes, "What programs may contain; several are taken in turn (see generate.h)");
  app.add_option("--configurations", configurations,
                 "By name, separated by commas; all emulated ones if not given");
  app.add_option("--seeds", plan.seeds, "Of the emulator, for each program in each configuration");
  app.add_option("--processes", plan.processes, "How many at a time")->check(CLI::Range(1, 64));
  app.add_option("--batch", plan.batch, "Programs in one process")->check(CLI::Range(1, 1000));
  app.add_option("--out", plan.out, "Folder for reduced programs");
  app.add_option("--set", settings, "NAME=VALUE: an environment variable of all runs");
  app.add_option("--find-fault", plan.faulty_library, "A preload library that has a fault");
  app.add_option("--write", write, "Writes the program of this seed to a file, and ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!plan.faulty_library.empty()) {
    if (!std::filesystem::exists(plan.faulty_library))
      throw Error(ErrorCode::Config, "there is no library " + plan.faulty_library.string());
    plan.most_failures = 1;
  }
  for (const std::string& setting : settings) {
    const size_t equals = std::min(setting.find('='), setting.size());
    plan.settings[setting.substr(0, equals)] = equals < setting.size() ? setting.substr(equals + 1) : "";
  }
  if (mixes.empty()) mixes = {"legal", "swarm"};
  for (const std::string& mix : mixes) plan.mixes.push_back(parse_mix(mix));
  if (!write.empty()) {
    write_case(make_sample(plan.seed, plan.mixes[plan.seed % plan.mixes.size()])->to_case(), write);
    return 0;
  }
  plan.time = std::chrono::seconds(seconds);
  if (plan.mixes[0].waits && plan.faulty_library.empty()) plan.refusal = refusal;
  plan.configurations = chosen_configurations(configurations);
  return run(plan);
}

}  // namespace

}  // namespace klap::differential::random

int main(int argc, char** argv) {
  try {
    return klap::differential::random::main_or_throw(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "klap_random: {}\n", error.what());
    return 2;
  }
}
