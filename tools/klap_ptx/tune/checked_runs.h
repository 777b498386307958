// Runs of the program that is tuned: natively, and with the library and some settings. Each run is checked.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "klap_ptx/commands.h"
#include "klap_ptx/run_folder.h"
#include "klap_ptx/tune/child_sizes.h"
#include "klap_ptx/tune/choice.h"
#include "klap_ptx/tune/program_run.h"
#include "klap_ptx/tune/sample_table.h"

namespace klap::tool {

struct Measured {
  SettingTimes times;   // of each run
  std::string problem;  // of the run that was wrong, then there are no times
};

// Performance counters of each parent, by its mangled name.
using ParentCounters = std::map<std::string, CounterValues>;

struct Counted {
  ParentCounters counters;
  std::vector<std::string> problems;  // why all, or some metrics, are missing
};

using Variables = std::map<std::string, std::string>;

class CheckedRuns {
 public:
  // Throws Error(Io) if the library is not there. `options` outlives this.
  explicit CheckedRuns(const TuneOptions& options);

  // A program may be wrong natively: CUDA loses launches, which the library does not.
  RunOutcome run_natively();
  // The first run with the library, which builds what it runs. Its exit code is right if it is that of a
  // native run, or 0. Throws Error(Unsupported) if the run is wrong.
  void run_first(const RunOutcome& native);
  // So many runs with these variables, which have that name in messages. They end with the first wrong one.
  [[nodiscard]] Measured measure(const Variables& setting, uint32_t runs, const std::string& name);
  // One run, in which these metrics are read and nothing is timed. A run that is wrong has no counters.
  [[nodiscard]] Counted count(const Variables& setting, const std::vector<std::string>& metrics) const;
  // The sizes of the children of each parent, from one more run with the default settings. Nothing if that is
  // wrong.
  [[nodiscard]] std::vector<ChildSizes> count_sizes() const;
  // One run whose kernels are not timed, with what is wrong with it.
  [[nodiscard]] std::pair<RunOutcome, std::string> run(const Variables& setting) const;

  // For a program whose launches are all its own.
  [[noreturn]] void throw_unreplaced() const;
  [[nodiscard]] std::string file(const char* name) const { return folder_.file(name); }
  // The library looks for tuned settings in these files, one for each module. The last measured run told.
  [[nodiscard]] const std::vector<std::string>& tuned_files() const { return tuned_files_; }

 private:
  [[nodiscard]] Variables environment(const Variables& setting) const;
  [[nodiscard]] std::string check(const RunOutcome& outcome) const;
  [[nodiscard]] nlohmann::json statistics() const;
  ParentTimes read_times();

  const TuneOptions& options_;
  const std::string library_;
  const RunFolder folder_;
  int expected_code_ = 0;
  std::chrono::duration<double> limit_{};
  std::vector<std::string> tuned_files_;
};

// Throws Error(Unsupported).
[[noreturn]] void wrong_with_library(const std::string& problem);

// Progress, on standard error.
void say(const std::string& line);

}  // namespace klap::tool
