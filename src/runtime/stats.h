// Statistics of the shim in this process, written as JSON at exit when KLAP_STATS names a file.
//
// The counters are always kept (they cost an increment) and never touch CUDA. So they can be written from an
// exit handler when the driver may already be gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "jit/module.h"
#include "runtime/timeline.h"
#include "support/json.h"

namespace klap::runtime {

// A module, or all loads of modules that only their times tell apart: a program that loads and unloads
// without end must not fill memory with records.
struct ModuleRecord {
  std::string how;        // "rewritten", "nothing to rewrite", "failed: REASON", "disabled"
  std::string load_path;  // driver function it came through, for example cuLibraryLoadData
  std::vector<jit::SiteRemark> remarks;
  std::vector<std::string> variants;  // names of rewritten parents
  std::string cache = "off";          // jit::CacheUse
  std::string tuned_file;             // TunedSettings::file
  bool is_tuned = false;              // that file was there
  uint64_t loads = 1;
  jit::Timings timings;  // the times are those of all loads
  double load_ms = 0;    // added to the program's load, all together
  double driver_ms = 0;  // of that in the driver's load of the rewritten image, which takes its place
};

// The guard's knowledge of launches of a parent that are all the same (parents/guard_choice.h).
struct GuardRecord {
  uint64_t launches = 0, children = 0;  // in this process; of each launch
  bool is_decided = false, is_original = false;
  uint64_t earlier_runs = 0;
  bool is_told = false;  // the decision is that of earlier runs
  double variant_ms = 0, original_ms = 0;
  uint64_t trials = 0;  // of the original, in this process
  double lost_ms = 0;   // by them
};

// Launches of a parent whose children run thread by thread or in blocks (forms/child_forms.h).
struct FormCounts {
  std::atomic<uint64_t> flat{0}, in_blocks{0}, looks{0};
  std::atomic<uint64_t> threads{0}, lanes{0};  // that looks have seen
};

// Memory of blocks that stop for their children (parents/frame_memory.h).
struct FrameCounts {
  bool is_counted = false;
  uint64_t bytes_taken = 0, bytes_returned = 0;  // from the device's heap, and to it
  uint64_t refused = 0;                          // times that a block found no memory
};

class Stats {
 public:
  static Stats& instance();

  void module_passed_through() { passed_through_.fetch_add(1, std::memory_order_relaxed); }
  void module_seen(ModuleRecord record);
  // One launch of `parent` by the host that ran its variant.
  void launch_redirected(const std::string& parent) { ++redirections(parent); }
  // The counter of such launches. It stays in place, so that a launch need not look for it.
  std::atomic<uint64_t>& redirections(const std::string& parent);
  // The counter of those in which one kernel was the parent and its own consumer.
  std::atomic<uint64_t>& fused_launches(const std::string& parent);
  // The counter of those whose children ran in CUDA's order, since what their overlap needs did not hold.
  std::atomic<uint64_t>& ordered_launches(const std::string& parent);
  // Counts of `parent`, which stay in place, too.
  FormCounts& forms(const std::string& parent);
  // Counts one such launch that ran in so many slices.
  void launch_sliced(const std::string& parent, uint64_t slices);
  // Counts launches of a rewritten parent that ran the original instead, and why ("stream capture", ...).
  void launch_left(const std::string& parent, const std::string& reason, uint64_t times = 1);
  // Notes how a parent's launches are replaced. The last one counts where it has several variants.
  void engine_seen(const std::string& parent, const std::string& engine);
  void guard_found(const std::string& parent, const GuardRecord& record);
  // Counts children of `child` by their size: bins as in ptx-patterns/kernels/child_sizes.h, of so many
  // `counted` each ("blocks of 64 threads"); only with KLAP_SIZES.
  void sizes_found(const std::string& parent, const std::string& child, const std::string& counted,
                   const std::vector<uint64_t>& sizes);
  // Counts one redirected launch that has finished, or one more slice of it; only with KLAP_TIMING.
  void launch_timed(const TimedRecord& launch);
  // Adds one launch of `parent` whose metrics were counted, and its values; only with KLAP_COUNTERS.
  void launch_counted(const std::string& parent, const std::map<std::string, double>& values);
  // Notes why metrics are missing there.
  void counting_failed(const std::string& problem);
  // Notes how much memory the blocks of all contexts have taken.
  void frames_found(const FrameCounts& counts);
  // Notes that the queues of a CUDA context have so many bytes.
  void queues_hold(uint64_t bytes);
  // Notes that there is a CUDA context on a device of this kind.
  void device_seen(const std::string& model);
  // The device adds up the children it ran here (host memory that the device can write), read at exit.
  const std::atomic<uint64_t>* children_total() const { return &children_; }
  std::atomic<uint64_t>* children_total() { return &children_; }

  // The device adds up launches here that found a full worklist and were the program's own.
  std::atomic<uint64_t>* native_total() { return &native_; }

  // The device adds up the links that promoted chains ran here: launches of kernels by themselves.
  std::atomic<uint64_t>* links_total() { return &links_; }

  // Called if none of these three was counted.
  void leave_out_children() { counts_children_ = false; }
  // Called if sizes_found() is called where there are sizes. Else the statistics say that nobody looked.
  void look_for_sizes() { looks_for_sizes_ = true; }

  [[nodiscard]] Json report() const;
  // The statistics as JSON, for tools and tests.
  [[nodiscard]] nlohmann::json to_json() const;
  // Writes report() to `file`, in whose name %p becomes the process id ("-": standard error). Never throws;
  // a failure is one log line.
  void write(const std::string& file) const noexcept;

 private:
  alignas(64) std::atomic<uint64_t> children_{0};
  std::atomic<uint64_t> native_{0};
  std::atomic<uint64_t> links_{0};
  std::atomic<bool> counts_children_{true};
  std::atomic<bool> looks_for_sizes_{false};
  std::atomic<uint64_t> passed_through_{0};
  // The caller holds the mutex.
  [[nodiscard]] Json gpu_times_json() const;
  [[nodiscard]] Json sizes_json() const;
  [[nodiscard]] Json counters_json() const;
  using LaunchCounts = std::map<std::string, std::atomic<uint64_t>>;  // by parent
  [[nodiscard]] Json sliced_json() const;
  [[nodiscard]] Json forms_json() const;
  [[nodiscard]] Json frames_json() const;
  [[nodiscard]] Json left_json() const;
  [[nodiscard]] Json parents_json() const;

  mutable std::mutex mutex_;
  std::vector<ModuleRecord> modules_;
  std::map<std::array<uint64_t, 2>, size_t> module_places_;  // by a hash of all but the times
  struct GpuTime {
    uint64_t launches = 0;
    double parent_ms = 0;
    double consumer_ms = 0;
  };
  std::map<std::string, GpuTime> gpu_times_;
  Timeline timeline_;
  struct Children {
    std::string parent, child, counted;
    auto operator<=>(const Children&) const = default;
  };
  std::map<Children, std::vector<uint64_t>> sizes_;
  struct Metric {
    double sum = 0;
    uint64_t launches = 0;
  };
  struct Counted {
    uint64_t launches = 0;
    std::map<std::string, Metric> metrics;
  };
  std::map<std::string, Counted> counted_;
  std::vector<std::string> counting_problems_;
  FrameCounts frames_;
  uint64_t most_queue_bytes_ = 0;  // of one CUDA context
  std::set<std::string> devices_;
  LaunchCounts redirected_, fused_, ordered_;
  std::map<std::string, FormCounts> forms_;
  struct Sliced {
    uint64_t launches = 0;
    uint64_t slices = 0;
  };
  std::map<std::string, Sliced> sliced_;
  std::map<std::string, std::map<std::string, uint64_t>> left_;
  std::map<std::string, std::string> engines_;
  std::map<std::string, std::vector<GuardRecord>> guards_;
};

}  // namespace klap::runtime
