// Statistics that the library wrote (KLAP_STATS), of one process or added up over several.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klap::tool {

using Counts = std::map<std::string, uint64_t>;

// How a site's children keep the order in which CUDA would run them.
enum class SiteOrder : uint8_t { Free, Proven, Tolerated, Kept, Relaxed };

// A launch site, once for all processes that loaded it.
struct SiteRecord {
  std::string child;  // demangled
  bool is_rewritten = false;
  std::string how;     // "grid by the host"; rewritten ones
  std::string reason;  // others
  std::string detail;
  std::string place;  // in the source or the PTX
  SiteOrder order = SiteOrder::Free;
  std::vector<std::string> notes;
};

// How many children had which size.
struct SizeHistogram {
  std::string child;    // demangled
  std::string counted;  // what a size is a number of
  // By the largest size of a bin; kLargest is that of the last bin, which has no end.
  static constexpr uint64_t kLargest = UINT64_MAX;
  std::map<uint64_t, uint64_t> bins;
};

// A choice of the guard, for launches that are all the same.
struct GuardFinding {
  uint64_t launches = 0, children = 0;  // in the process; of each launch
  std::string choice;                   // "variant", "original" or "open"
  double variant_ms = 0, original_ms = 0;
};

// A metric of the GPU's counters.
struct CounterSum {
  double sum = 0;
  uint64_t launches = 0;
};

struct KernelRecord {
  std::string name;                         // demangled
  std::string engine;                       // "aggregation at grid by the host"
  uint64_t rewritten = 0;                   // launches by the host
  Counts left;                              // launches of the original, by reason
  std::map<std::string, SiteRecord> sites;  // by place
  std::optional<uint64_t> children;         // if they were counted for this kernel
  uint64_t timed = 0;                       // launches with a measured time, which these are the sums of
  double parent_ms = 0, children_ms = 0;
  uint64_t fused = 0;                // of the rewritten launches, those of one kernel
  uint64_t ordered = 0;              // likewise, those whose children could have overlapped, and did not
  uint64_t sliced = 0, slices = 0;   // of the rewritten launches, those in slices; all their slices
  uint64_t flat = 0, in_blocks = 0;  // launches by the form of their children
  std::vector<SizeHistogram> sizes;  // by child
  std::vector<GuardFinding> guard;
  std::map<std::string, CounterSum> counters;

  [[nodiscard]] double timed_ms() const { return parent_ms + children_ms; }
  // The rewritten launches whose children ran in CUDA's order, as these may conflict in memory.
  [[nodiscard]] uint64_t launches_in_order() const;
};

// One launch with its times.
struct TimedLaunch {
  std::string kernel;  // mangled
  uint64_t context = 0;
  double begin_ms = 0, parent_ms = 0, children_ms = 0;
  bool is_slice = false;
};

// How klap run ran the program.
struct RunRecord {
  std::vector<std::string> command;
  double seconds = 0;
  bool is_native = false;  // each kernel as it is (--native)
  std::optional<int> exit_code;
  // These two are of the run before that it was compared with (--compare).
  std::optional<double> native_seconds;
  std::optional<int> native_exit_code;
};

struct ProcessRecord {
  uint64_t id = 0;
  std::string label;  // tells it from others: its rank or file
  uint64_t rewritten = 0, left = 0;
  std::optional<uint64_t> children;
  double parent_ms = 0, children_ms = 0;
  std::vector<TimedLaunch> first, slowest;
};

// Memory of blocks that stop for their children, in bytes.
struct FrameMemory {
  uint64_t taken = 0, returned = 0, refused = 0;
};

struct Statistics {
  uint64_t processes = 0;
  uint64_t modules = 0;         // that were looked into
  uint64_t passed_through = 0;  // that hold no launches
  Counts failed;                // modules that stayed as they are because of an error, by its text
  uint64_t compiled = 0;        // modules that were in no cache
  double compile_ms = 0;
  std::map<std::string, double> compile_steps_ms;
  double load_ms = 0;        // that loading took longer, without the driver's load of rewritten code
  bool knows_order = false;  // launches that kept the order were counted
  bool has_sizes = false;    // the sizes of children were asked for
  std::map<std::string, KernelRecord> kernels;  // by mangled name
  // Nothing if they were not counted.
  std::optional<uint64_t> children, native_children, chain_links;
  std::vector<ProcessRecord> all_processes;
  std::optional<RunRecord> run;  // the longest one
  std::set<std::string> devices;
  std::optional<uint64_t> queue_bytes;  // the most that a CUDA context of one process had
  std::optional<FrameMemory> frames;
  std::vector<std::string> counter_problems;

  // Adds the statistics of one process. Throws Error(Unsupported) if they are none.
  void add(const nlohmann::json& process, const std::string& label = "");

  [[nodiscard]] uint64_t rewritten() const;
  [[nodiscard]] size_t kernels_rewritten() const;
  [[nodiscard]] uint64_t timed() const;
  [[nodiscard]] double timed_ms() const;
  // Launches of parents and launch sites that are as they were, by reason.
  [[nodiscard]] Counts left_launches() const;
  [[nodiscard]] Counts left_sites() const;
};

// The statistics in a file: those of one process, or an array of several. Throws Error that names the file.
std::vector<nlohmann::json> read_statistics(const std::string& file);

}  // namespace klap::tool
