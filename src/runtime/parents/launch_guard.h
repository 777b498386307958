// Keeps rewriting from making a program slower: a parent runs as it is where that is faster (guard_choice.h).
// KLAP_GUARD=off turns it off.
//
// Launches are the same if they have the same parameters, grid, block and shared memory. Their variant tells
// how many children they have, and the analysis has shown that this number stays the same
// (analysis/counts/fixed_launches.h). So it is known before the original is tried that CUDA loses none of its
// launches. No other parents are tried. A launch is measured by events around it, which few launches have.
//
// Another process has its memory at other addresses. So profiles of earlier runs (guard_profile.h) know
// launches without the addresses of memory in their parameters. That holds only for addresses on which the
// number of launches does not depend, or a trial could lose children.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/parents/guard_choice.h"
#include "runtime/parents/guard_profile.h"
#include "runtime/parents/known_launch.h"
#include "runtime/program_launch.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// The guard of one parent.
class LaunchGuard {
 public:
  using Next = GuardChoice::Next;
  // `module` names all that the variant's times depend on, but for the device. If it is empty, no profile is
  // read or written.
  explicit LaunchGuard(const jit::Variant& variant, std::string module = "");
  ~LaunchGuard();
  LaunchGuard(const LaunchGuard&) = delete;
  LaunchGuard& operator=(const LaunchGuard&) = delete;

  // True if the program's own kernel is measured.
  static bool is_original(Next next) {
    return next == Next::MeasuredOriginal || next == Next::CheckedOriginal;
  }
  // True if a launch that is measured does not count its children, as their reports would take long beside
  // it.
  [[nodiscard]] bool counts_apart() const;
  // The number of operations that measuring or counting a launch puts into its stream, at most.
  [[nodiscard]] uint64_t operations() const;
  // How the launch is to be made. `most_children` as in GuardChoice. If it is to be measured or counted, a
  // MeasuredLaunch has to follow. `context` is that of the launch's stream, whose mutex the caller holds.
  Next next(const Launch& launch, LaunchContext& context, uint64_t most_children);
  // True if next() need not be asked about the launch, since it would answer as it did to the launch before.
  // The launch is counted then. For the original, `may_run` says whether it may be made in circumstances that
  // are those of the launch before; it is asked last.
  template <class MayRun>
  bool knows_original(const Launch& launch, const MayRun& may_run) {
    return knows(launch, Next::Original, may_run);
  }
  bool knows_variant(const Launch& launch, uint64_t context_id) {
    return knows(launch, Next::Variant, [&](const auto& in) { return in.context_id == context_id; });
  }

  // A choice, for the log: set once when it is made, or when it is taken over from earlier runs.
  struct Found {
    bool is_original = false;
    double variant_ms = 0, original_ms = 0;
    uint64_t runs = 0;  // that it comes from; 0: this one
  };
  std::optional<Found> take_found();

  // Reads the launch that is being measured if it is done and was made in the current context.
  void collect();
  // Called at exit: does so, and hands all times over to the profiles.
  void finish();
  // Adds what is known of its launches to the statistics.
  void add_to_statistics();

 private:
  using Key = std::array<uint64_t, 2>;
  struct Launches {
    Key key{};
    uint64_t last_used = 0;
    GuardChoice choice;
    std::string profile;  // its name; empty if there is none
    Key profiled{};       // the launch's key in it
  };
  // The launch that is being measured.
  struct Sample {
    Key key{};
    Next form = Next::Variant;
    uint64_t context_id = 0;
    CUevent before = nullptr, after = nullptr;
    ReportSlot report;                // of its children, none if they are not counted
    std::vector<CUdeviceptr> places;  // where its queues say where to report
    uint64_t children_before = 0;
    uint32_t launches_elsewhere = 0;
  };
  friend class MeasuredLaunch;
  void begin(const Launch& launch, LaunchContext& context, bool is_whole);
  void end(const Launch& launch, bool succeeded);
  template <class MayRun>
  bool knows(const Launch& launch, Next next, const MayRun& may_run) {
    if (!known_.may_know()) return false;
    const std::lock_guard lock(mutex_);
    if (known_next_ != next || !known_.knows(launch) || !may_run(known_.circumstances())) return false;
    known_.count();
    return true;
  }
  Launches* find(const Key& key);
  Launches& launches_of(const Key& key, const Launch& launch, const LaunchContext& context);
  void take_profile(Launches& launches, const Launch& launch, const LaunchContext& context);
  void hand_over(Launches& launches) const;
  void note_choice(const GuardChoice& choice);
  void count_known();
  ReportSlot report_for(Next next, LaunchContext& context) const;
  void take_result(GuardChoice& choice, const Sample& sample, double ms);
  void collect(uint64_t context_id);
  void drop_sample();
  void forget_sample();

  const jit::Variant& variant_;
  const std::string module_;
  size_t profiled_ = 0;  // launches that a profile was asked for
  std::mutex mutex_;
  uint64_t clock_ = 0;
  std::array<Launches, 8> launches_{};
  KnownLaunch known_;
  Next known_next_ = Next::Variant;
  Key known_key_{};
  std::optional<Sample> sample_;
  bool is_complete_ = false;  // all of the sample is in the stream
  std::optional<Found> found_;
};

// True if a measured launch is in its stream, whose time was not read yet.
bool is_launch_measured() noexcept;
// For all guards: collect(). A program that launches once may reset its device before it exits, so this is
// called where it frees memory.
void collect_measured_launches();
// For all guards: finish(), and add_to_statistics().
void finish_guards();
void add_guards_to_statistics();

// One launch that next() wants measured. It is not if end() is not called.
class MeasuredLaunch {
 public:
  // Null: the launch is not to be measured, and all of this does nothing.
  MeasuredLaunch(LaunchGuard* guard, const Launch& launch, LaunchContext& context)
      : guard_(guard), launch_(launch), context_(context) {}
  ~MeasuredLaunch() { end(false); }
  MeasuredLaunch(const MeasuredLaunch&) = delete;
  MeasuredLaunch& operator=(const MeasuredLaunch&) = delete;

  // Called before the launch, and when it is in the stream if it `succeeded`. `is_whole`: it is not made in
  // slices, each of which may have another head of the queues.
  void begin(bool is_whole = true) {
    if (guard_ != nullptr) guard_->begin(launch_, context_, is_whole);
  }
  void end(bool succeeded) {
    if (LaunchGuard* const guard = std::exchange(guard_, nullptr)) guard->end(launch_, succeeded);
  }

 private:
  LaunchGuard* guard_;
  const Launch& launch_;
  LaunchContext& context_;
};

}  // namespace klap::runtime
