#include "runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>

#include "support/error.h"
#include "support/file.h"

namespace klap::differential {

namespace {

// New granularities and launchers are added here, and nowhere else.
struct Form {
  const char* granularity;
  const char* launcher;
  const char* multiblock = "";  // blocks of a group
};
constexpr std::array<Form, 7> kForms = {{{"grid", "host"},
                                         {"grid", "device"},
                                         {"grid", "fused"},
                                         {"block", "device"},
                                         {"multiblock", "device", "2"},
                                         {"multiblock", "device", "5"},
                                         {"warp", "device"}}};

std::filesystem::path library_folder() { return own_folder().parent_path() / "lib"; }

std::vector<Configuration> make_configurations() {
  std::vector<Configuration> all;
  for (const bool is_gpu : {false, true}) {
    const std::string prefix = is_gpu ? "gpu-" : "";
    all.push_back({prefix + "native", is_gpu, false, "", "", ""});
    for (const Form& form : kForms) {
      all.push_back({fmt::format("{}{}{}-{}", prefix, form.granularity, form.multiblock, form.launcher),
                     is_gpu, true, form.granularity, form.launcher, form.multiblock});
    }
  }
  return all;
}

std::map<std::string, std::string> variables_of(const Work& work, const std::string& statistics) {
  const Configuration& c = work.configuration;
  std::map<std::string, std::string> variables;
  if (!c.is_gpu) {
    variables["LD_LIBRARY_PATH"] = (library_folder() / "emulator").string();
    variables["KLAP_EMULATOR_QUIET"] = "1";
    variables["KLAP_EMULATOR_WEAK_MEMORY"] = "1";
    variables["KLAP_EMULATOR_RACES"] = "1";
  }
  if (c.is_preloaded) {
    variables["LD_PRELOAD"] = (library_folder() / "libklap_jit.so").string();
    variables["KLAP_GRANULARITY"] = c.granularity;
    variables["KLAP_LAUNCHER"] = c.launcher;
    variables["KLAP_GUARD"] = "off";  // what is tested is what the library makes
    if (!c.multiblock.empty()) variables["KLAP_MULTIBLOCK"] = c.multiblock;
    // Cases that stand in one file are one module, which is rewritten once for all of them; those in files of
    // their own are new each time.
    if (work.files.empty()) {
      variables["KLAP_CACHE_DIR"] = (library_folder() / "differential-cache").string();
    } else {
      variables["KLAP_CACHE_DISABLE"] = "1";
    }
    if (!c.is_gpu) variables["KLAP_LINKER"] = "driver";
    // A queue that feeds itself is cleared first, which at its usual size takes the emulator half a second.
    // Its quarter of this has room for the executor's 67,584 records of 256 bytes and their items.
    if (!c.is_gpu) variables["KLAP_POOL_BYTES"] = "96M";
    if (!statistics.empty()) variables["KLAP_STATS"] = statistics;
  }
  for (const auto& [name, value] : work.variables) variables[name] = value;
  return variables;
}

std::vector<std::string> command_of(const Work& work) {
  std::vector<std::string> command = {(own_folder() / "klap_case").string()};
  command.insert(command.end(), work.cases.begin(), work.cases.end());
  for (const std::filesystem::path& file : work.files) {
    command.emplace_back("--file");
    command.push_back(file.string());
  }
  command.emplace_back("--seeds");
  command.push_back(fmt::format("{}..{}", work.first_seed, work.last_seed));
  return command;
}

std::vector<Line> lines_of(const std::string& out) {
  std::vector<Line> lines;
  std::istringstream in(out);
  for (std::string text; std::getline(in, text);) {
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object() || !j.contains("case")) continue;
    lines.push_back({j.at("case"), j.at("result"), j.at("detail"), j.at("seed"),
                     j.value("heap_allocations", uint64_t{0}), j.value("heap_kept", uint64_t{0}),
                     j.value("device_launches", uint64_t{0}), j.value("launches_refused", uint64_t{0})});
  }
  return lines;
}

}  // namespace

std::span<const Configuration> configurations() {
  static const std::vector<Configuration> all = make_configurations();
  return all;
}

std::vector<Configuration> chosen_configurations(const std::string& names) {
  std::vector<Configuration> chosen;
  std::istringstream in(names);
  for (std::string name; std::getline(in, name, ',');) {
    const auto found = std::ranges::find(configurations(), name, &Configuration::name);
    if (found == configurations().end()) {
      std::vector<std::string> known;
      for (const Configuration& c : configurations()) known.push_back(c.name);
      throw Error(ErrorCode::Config, "there is no configuration " + name)
          .fix(fmt::format("one of {}", fmt::join(known, ", ")));
    }
    chosen.push_back(*found);
  }
  if (!chosen.empty()) return chosen;
  for (const Configuration& c : configurations()) {
    if (!c.is_gpu) chosen.push_back(c);
  }
  return chosen;
}

std::string expected_verdict(const Site& site, const Configuration& configuration) {
  if (configuration.launcher == "fused") {  // the host where it may, else the parent
    const auto with = [&](const char* launcher) {
      Configuration other = configuration;
      other.launcher = launcher;
      return expected_verdict(site, other);
    };
    return with("host") == "rewritten"     ? "rewritten"
           : with("device") == "rewritten" ? "rewritten"
                                           : with("host");
  }
  const bool by_warp = configuration.granularity == "warp";
  if (by_warp && !site.by_warp.empty())
    return site.by_warp == "rewritten" || site.by_warp == "some" ? site.by_warp : "left: " + site.by_warp;
  const bool by_group = configuration.granularity == "block" || configuration.granularity == "multiblock";
  if (by_group && !site.left_by_group.empty()) return "left: " + site.left_by_group;
  const std::string& there = by_warp                              ? std::string()
                             : configuration.launcher == "device" ? site.left_on_device
                                                                  : site.left_on_host;
  const std::string& reason = there.empty() ? site.left : there;
  return reason.empty() || reason == "rewritten" ? "rewritten" : "left: " + reason;
}

std::string Report::problem(const Work& work) const {
  constexpr size_t kShown = 3;
  std::string text;
  size_t wrong = 0;
  for (const Line& line : lines) {
    if (line.result == "equal" || ++wrong > kShown) continue;
    text += fmt::format("{}, seed {}: {}: {}\n", line.name, line.seed, line.result, line.detail);
  }
  if (wrong > kShown) text += fmt::format("{} of {} runs in all\n", wrong, lines.size());
  const size_t runs = (work.cases.size() + work.files.size()) * (work.last_seed - work.first_seed + 1);
  if (lines.size() != runs) text += fmt::format("{} of {} runs have no result\n", runs - lines.size(), runs);
  if (outcome.timed_out) text += "the time was up\n";
  if (text.empty() && outcome.status != 0) text += fmt::format("exit status {}\n", outcome.status);
  return text;
}

std::string Report::first_errors() const {
  constexpr int kShown = 5;
  std::string text;
  std::istringstream in(outcome.error);
  std::string line;
  for (int i = 0; i < kShown && std::getline(in, line); ++i) text += line + "\n";
  return text;
}

Run::Run(Work work) : work_(std::move(work)) {
  process_ = std::make_unique<Process>(
      command_of(work_), variables_of(work_, (folder_.path() / "statistics").string()), work_.limit);
}

Report Run::wait() {
  Report report;
  report.outcome = process_->wait();
  report.lines = lines_of(report.outcome.out);
  const std::filesystem::path statistics = folder_.path() / "statistics";
  if (std::filesystem::exists(statistics)) {
    report.statistics = nlohmann::json::parse(read_file(statistics), nullptr, false);
  }
  return report;
}

std::string command_line(const Work& work) {
  std::string text;
  for (const auto& [name, value] : variables_of(work, "")) text += name + "=" + value + " ";
  return text + fmt::format("{}", fmt::join(command_of(work), " "));
}

size_t turn_of(const std::string& name) { return std::accumulate(name.begin(), name.end(), size_t{0}); }

std::string missing_emulator() {
  const std::filesystem::path library = library_folder() / "emulator" / "libcuda.so.1";
  return std::filesystem::exists(library) ? "" : "there is no " + library.string();
}

}  // namespace klap::differential
