// Running cases in the configurations that there are: one process of klap_case each.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "case.h"
#include "process.h"

namespace klap::differential {

struct Configuration {
  std::string name;
  bool is_gpu = false;  // else the emulated driver
  bool is_preloaded = false;
  std::string granularity, launcher;  // preloaded
  std::string multiblock;             // blocks of a group, where the granularity has any
};

// The table: natively and preloaded at each granularity and launcher, emulated and on a GPU.
std::span<const Configuration> configurations();
// By names separated by commas; empty: all emulated ones. Throws Error(Config).
std::vector<Configuration> chosen_configurations(const std::string& names);

// The verdict on the site that a preloaded run in that configuration must have: "rewritten", "left: REASON"
// or "some".
std::string expected_verdict(const Site& site, const Configuration& configuration);

struct Work {
  Configuration configuration;
  std::vector<std::string> cases;  // by name
  std::vector<std::filesystem::path> files;
  uint64_t first_seed = 1, last_seed = 1;
  std::chrono::seconds limit{120};
  std::map<std::string, std::string> variables;  // set besides
};

// One run of one case, as klap_case printed it.
struct Line {
  std::string name, result, detail;
  uint64_t seed = 0;
  // On an emulated device, by kernels; bytes that were not freed; launches that were refused because too many
  // were pending.
  uint64_t heap_allocations = 0, heap_kept = 0, device_launches = 0, launches_refused = 0;
};

struct Report {
  Outcome outcome;
  std::vector<Line> lines;
  nlohmann::json statistics;  // KLAP_STATS of preloaded runs; null if there is none
  [[nodiscard]] bool is_missing_device() const { return outcome.status == 77; }
  // The problems of the run, in a few lines; empty if every case was equal under every seed.
  [[nodiscard]] std::string problem(const Work& work) const;
  // The first lines of the process's standard error: findings of the emulator come there.
  [[nodiscard]] std::string first_errors() const;
};

// A started process of klap_case.
class Run {
 public:
  explicit Run(Work work);
  bool has_ended() { return process_->has_ended(); }
  Report wait();
  [[nodiscard]] const Work& work() const { return work_; }

 private:
  Work work_;
  TemporaryFolder folder_;
  std::unique_ptr<Process> process_;
};

// The command line that does the same by hand.
std::string command_line(const Work& work);

// A number that belongs to the name, whatever other names there are. If only some of several runs are made,
// it says whose turn it is.
size_t turn_of(const std::string& name);

// Why there is no emulated driver to run on; empty if there is.
std::string missing_emulator();

}  // namespace klap::differential
