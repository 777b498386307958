// The report of klap-ptx tune, for people and as JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "klap_ptx/tune/checked_runs.h"
#include "klap_ptx/tune/choice.h"
#include "klap_ptx/tune/findings.h"
#include "klap_ptx/tune/search.h"

namespace klap::tool {

// The choice for a kernel that the model alone would have made, before all other configurations were tried.
struct ModelChoice {
  Configuration configuration;
  size_t proposals = 0;  // of its search
};

struct TuneReport {
  const TuneOptions* options = nullptr;
  std::vector<Candidate> tried;
  size_t not_tried = 0;                              // candidates for which there was no time
  std::vector<Measured> measured;                    // of each candidate that was tried, alone
  size_t samples = 0;                                // runs with several candidates together
  std::map<std::string, ModelChoice> model_choices;  // by parent; of an exhaustive search
  std::vector<Choice> choices;
  std::map<std::string, Search> searches;  // by parent
  double native_seconds = 0, seconds = 0;  // of the native run, and of all
  std::vector<double> default_seconds, tuned_seconds;
  SettingTimes default_runs;
  std::vector<ChildSizes> sizes;                             // in a run at the default
  std::vector<std::string> kept_in;                          // files that later runs of the program read
  std::map<std::string, Findings> findings;                  // by parent
  std::map<std::string, Findings> counter_findings;          // by performance counters, by parent
  std::vector<std::string> counter_problems;                 // why counters, or some of them, are missing
  std::map<std::string, std::vector<std::string>> pictures;  // their files, by parent

  [[nodiscard]] bool has_choice() const;
  // True if each run of the whole program with the choices took longer than all runs without, by more than
  // the clock's noise. Kernels may gain less than what the choices cost beside them, such as a longer start.
  [[nodiscard]] bool slows_program() const;
};

void print_report(const TuneReport& report);
nlohmann::json to_json(const TuneReport& report);

}  // namespace klap::tool
