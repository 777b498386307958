// The choice between a parent's variant and the program's own kernel, for launches that are all the same.
//
// A variant may be slower than the original, mostly where children are large. So some launches of each are
// measured, and the faster one runs from then on. To try the original costs time if it is slower: as long as
// CUDA needs to launch the children from the device. It is tried only when that is less than a few percent of
// the time that all launches so far took. So a variant that saves much is never given up for a trial, and no
// program loses more than that, but for the time in which CUDA sets up its device runtime at the first trial,
// and for what that trial's children do, which is not known before. Both are measured again now and then,
// because the data may have changed.
//
// Processes go on where earlier ones ended (guard_profile.h). If these know both times, the faster form runs
// from the first launch on. If not, their time counts, too, when a trial is weighed against the time so far.
// So a program that launches once in each process has its trial in one of them. A process that finds a time
// far from the one that it was told measures everything again, and so does one after a day.
//
// This class only decides. launch_guard.h measures, and knows which launches are the same.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/parents/guard_times.h"

namespace klap::runtime {

class GuardChoice {
 public:
  // CountedVariant: its children are counted, which takes time. CheckedOriginal: it is measured, and it is
  // not tried but known to be faster.
  enum class Next : uint8_t {
    Variant,
    MeasuredVariant,
    CountedVariant,
    Original,
    MeasuredOriginal,
    CheckedOriginal
  };

  // Knows of no earlier runs, and of no later ones.
  GuardChoice() = default;
  // `now` in seconds since the epoch.
  GuardChoice(const GuardTimes& earlier, int64_t now);

  // Counts a launch, and says how it is to be made. `most_children`: as many can be launched from the device
  // without losing one. A launch that is measured or counted must be answered by one of the functions below.
  // Until then, no other launch is measured.
  Next next(uint64_t most_children);
  // So many launches need not ask next(), which would answer as it did last, or have a trial a little later.
  [[nodiscard]] uint64_t settled_launches() const;
  // So many launches did not ask.
  void did_not_ask(uint64_t launches);
  void variant_took(double ms);
  void counted(uint64_t children);
  void original_took(double ms);
  void not_measured() { is_measuring_ = false; }

  // True once the two forms were compared, and true if the original was found to be faster.
  [[nodiscard]] bool is_decided() const { return is_decided_; }
  [[nodiscard]] bool is_original() const { return is_decided_ && takes_original_; }
  // True if the decision is that of earlier runs.
  [[nodiscard]] bool is_told() const { return is_told_; }
  // The times of each that were compared, 0 where there are none.
  [[nodiscard]] double variant_ms() const;
  [[nodiscard]] double original_ms() const;
  // Before this process.
  [[nodiscard]] uint64_t earlier_runs() const { return earlier_.runs; }
  [[nodiscard]] uint64_t launches() const { return own_.launches; }
  [[nodiscard]] uint64_t trials() const { return trials_; }
  [[nodiscard]] double lost_ms() const { return own_.lost_ms + set_up_ms_; }
  [[nodiscard]] uint64_t children() const;

  // The times of this process: nothing where it has not measured a launch.
  [[nodiscard]] std::optional<GuardTimes> found() const;
  // True if the times of earlier runs are no longer true.
  [[nodiscard]] bool replaces() const { return replaces_; }

 private:
  [[nodiscard]] GuardTimes all() const;
  [[nodiscard]] bool is_launched_rarely() const;
  [[nodiscard]] double launches_ms() const;
  [[nodiscard]] bool may_try_original(const GuardTimes& times) const;
  [[nodiscard]] bool may_lose(double ms, const GuardTimes& times) const;
  [[nodiscard]] bool knows_variant(const GuardTimes& times) const;
  [[nodiscard]] Next next_chosen();
  [[nodiscard]] Next next_undecided(uint64_t most_children);
  void decide_by_first(const GuardTimes& times);
  void decide_by_later(const GuardTimes& times);
  void decide(bool takes_original);
  void begin_again();
  void took(double ms, const FormTimes& earlier, FormTimes& own);
  void check_told(double ms, const Samples& told);

  GuardTimes earlier_, own_;
  int64_t now_ = 0;
  // Both forms are measured again after so many launches: soon at first where the variant was chosen, since a
  // choice by a few times of short kernels may be wrong, and then twice as late each time.
  uint64_t measured_again_after_ = 125;
  uint64_t since_decision_ = 0, trials_ = 0;
  double set_up_ms_ = 0;  // lost in the first trial beyond its launches, which later trials need not pay
  bool is_measuring_ = false, is_decided_ = false, takes_original_ = false;
  bool is_kept_ = false;   // there are later runs
  bool is_told_ = false;   // by earlier runs
  bool by_first_ = false;  // decided by the first launches of processes
  bool replaces_ = false;
  bool is_first_measured_ = false;  // the launch that is being measured is the first of its form
  bool has_run_original_ = false;
};

}  // namespace klap::runtime
