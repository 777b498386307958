// What every benchmark program shares: its common options, repetitions timed by CUDA events with each result
// checked, and the report as text and as one line of JSON.
//
// CUDA gives device-side launches a fixed number of pending slots (2,048 by default). Launches beyond it fail
// and their work is lost, silently unless the kernel asks; a larger limit makes every device launch slower. A
// fair native figure is therefore the fastest one among the limits that *work*, and "works" is strict here:
// every repetition's result is right and a counting run of the same work lost no launch.
//
// `--serve` is for measuring scripts (benchmarks/run): the program prepares its problem and then does one
// repetition each time it is told to, so that several variants can take turns, each in a warm process of its
// own. Commands come on standard input, one word a line, and each is answered by one line of JSON:
//   run      solves and checks once: {"ms": 1.25, "mistake": ""}
//   lost     solves once with kernels that count failed launches: {"lost_launches": 0}
//   limit N  sets the pending-launch limit: {"limit": N}, with "refused" and CUDA's reason if it was not set
//   quit     ends the program
// Before the first command the program prints the line that describes it, as in the report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json.h"
#include "options.h"

namespace bench {

struct CommonOptions {
  // The first variant is the default; "cdp" must be among them.
  explicit CommonOptions(std::vector<std::string> variants = {"cdp", "flat"});

  std::vector<std::string> variants;
  std::string variant;
  long long seed = 1;
  long long reps = 9;
  long long warmup = 2;
  long long pending_limit = 0;  // 0 leaves CUDA's default
  bool count_failures = false;
  bool serve = false;
  std::string json;  // file name, "-" for standard output, empty for none

  void add_to(Options& options);
};

// What the host does in one run, of which the floor of its time follows.
struct HostWork {
  long long kernels = 0;  // that it launches
  long long parents = 0;  // of these, those that launch others
  long long fills = 0;    // of device memory
  long long reads = 0;    // times that it waits for what the device found before it goes on
};

// One problem on the device, ready to be solved again and again.
class Benchmark {
 public:
  virtual ~Benchmark() = default;
  // Brings the device memory to its state before a run; not timed.
  virtual void reset() = 0;
  // Solves the problem; all work is in the default stream, and this is what is timed.
  virtual void run() = 0;
  // Solves it with kernels that count failed launches, and returns their number; only called for "cdp".
  virtual long long count_lost_launches() = 0;
  // Compares the last run's result with the CPU's; returns what is wrong, empty when nothing is.
  [[nodiscard]] virtual std::string verify() = 0;
  // Adds the problem's sizes to the report, among them `child_launches` (device launches in one run of the
  // variant, 0 for others than "cdp") and `bytes_to_move` (what any solution must read and write at least, of
  // which the physical floor follows).
  virtual void describe(JsonObject& report) const = 0;
  // What run() makes the host do; none where nobody here knows, as in a library. The tests on the emulated
  // driver count the kernels.
  [[nodiscard]] virtual std::optional<HostWork> host_work() const = 0;
};

// Measures `benchmark` as the options say and reports; returns the program's exit code.
int run_benchmark(const char* program, const CommonOptions& options, Benchmark& benchmark);

}  // namespace bench
