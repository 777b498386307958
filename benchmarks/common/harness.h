// What every benchmark program shares: its common options, repetitions timed by CUDA events with each result
// checked, the search for the best pending-launch limit, and the report as text and as one line of JSON.
//
// CUDA gives device-side launches a fixed number of pending slots (2,048 by default). Launches beyond it fail
// and their work is lost, silently unless the kernel asks; a larger limit makes every device launch slower. A
// fair native figure is therefore the fastest one among the limits that *work*, and "works" is strict here:
// every repetition's result is right and a counting run of the same search lost no launch.
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "options.h"

namespace bench {

struct CommonOptions {
  std::string variant = "cdp";
  long long seed = 1;
  long long reps = 9;
  long long warmup = 2;
  long long pending_limit = 0;  // 0 leaves CUDA's default
  bool find_limit = false;
  bool count_failures = false;
  std::string json;  // file name, "-" for standard output, empty for none

  void add_to(Options& options);
};

// One problem on the device, ready to be solved again and again.
class Benchmark {
 public:
  virtual ~Benchmark() = default;
  // Brings the device memory to its state before a run; not timed.
  virtual void reset() = 0;
  // Solves the problem; all work is in the default stream, and this is what is timed.
  virtual void run() = 0;
  // Solves it with a kernel that counts failed launches, and returns their number.
  virtual long long count_lost_launches() = 0;
  // Compares the last run's result with the CPU's; returns what is wrong, empty when nothing is.
  [[nodiscard]] virtual std::string verify() = 0;
  // Adds the problem's sizes to the report.
  virtual void describe(JsonObject& report) const = 0;
};

// Measures `benchmark` as the options say and reports; returns the program's exit code.
int run_benchmark(const char* program, const CommonOptions& options, Benchmark& benchmark);

}  // namespace bench
