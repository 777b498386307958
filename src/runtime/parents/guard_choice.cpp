#include "runtime/parents/guard_choice.h"

#include <algorithm>

namespace klap::runtime {
namespace {

// The first launches of a kernel take longer than later ones.
constexpr uint64_t kFirst = 2;
constexpr uint64_t kMeasured = 3;  // launches of each
// CUDA takes up to so long for each launch from the device: a chain of 999 tail launches took 10.3 us for
// each.
constexpr double kLaunchMs = 0.011;
constexpr double kMostLost = 0.03;
// The original has to be so much faster, since a measurement is never exact.
constexpr double kFaster = 0.97;
// A trial that takes so much longer need not be repeated more than once.
constexpr double kMuchSlower = 1.3;
constexpr uint64_t kMeasureAgain = 1000;  // at least once in so many launches
// The host needs so much longer for a launch that is measured. Where the GPU waits for it, that is lost. It
// does not count for first launches, which take far longer anyway.
constexpr double kMeasuringMs = 0.01;
constexpr int64_t kOld = 24 * 3600;  // seconds until earlier runs are no longer believed
constexpr double kOtherTime = 1.5;   // nor are they if a launch takes so many times as long, or as short

double added_ms(double took, double otherwise) { return std::max(0.0, took - otherwise); }

// A process of so many launches, by these times.
double run_ms(const FormTimes& form, double launches) {
  const double first = form.first.empty() ? form.later.typical() : form.first.typical();
  return first + std::max(0.0, launches - 1) * form.later.typical();
}

}  // namespace

GuardChoice::GuardChoice(const GuardTimes& earlier, int64_t now)
    : earlier_(earlier), now_(now), is_kept_(true) {
  // A clock that was set back makes times of the future, which are as good as old ones.
  const bool is_old = earlier_.checked != 0 && (now - earlier_.checked > kOld || earlier_.checked > now);
  if (is_old) begin_again();
  if (earlier_.runs == 0) return;
  if (is_launched_rarely()) {
    decide_by_first(earlier_);
  } else {
    decide_by_later(earlier_);
  }
  is_told_ = is_decided_;
}

GuardChoice::Next GuardChoice::next(uint64_t most_children) {
  ++own_.launches;
  if (is_decided_ && ++since_decision_ > measured_again_after_) {
    measured_again_after_ = std::min(2 * measured_again_after_, kMeasureAgain);
    begin_again();
  }
  // The first launches of processes say nothing about later ones.
  if (is_decided_ && by_first_ && own_.launches > kFirst) {
    is_decided_ = is_told_ = by_first_ = false;
    decide_by_later(all());
  }
  if (is_original() && children() > most_children) is_decided_ = false;
  return is_decided_ ? next_chosen() : next_undecided(most_children);
}

// One launch of each process is measured, to see whether earlier runs are still right.
GuardChoice::Next GuardChoice::next_chosen() {
  const uint64_t checked_launch = is_launched_rarely() ? 1 : kFirst + 1;
  const bool is_check = is_told_ && !is_measuring_ && own_.launches == checked_launch;
  if (is_check) {
    is_measuring_ = true;
    is_first_measured_ = own_.launches == 1;
  }
  if (takes_original_) {
    has_run_original_ = true;
    return is_check ? Next::CheckedOriginal : Next::Original;
  }
  return is_check ? Next::MeasuredVariant : Next::Variant;
}

GuardChoice::Next GuardChoice::next_undecided(uint64_t most_children) {
  if (is_measuring_) return Next::Variant;
  const GuardTimes times = all();
  const bool is_rare = is_launched_rarely() && own_.launches <= kFirst;
  const bool is_first = own_.launches <= kFirst && (earlier_.runs == 0 || own_.launches > 1);
  const bool may_lose_none = children() <= most_children;
  if (!is_first && knows_variant(times) && may_lose_none && may_try_original(times)) {
    is_measuring_ = true;
    is_first_measured_ = !has_run_original_;
    return times.counted != 0 ? Next::MeasuredOriginal : Next::CountedVariant;
  }
  const bool measures_first = is_kept_ && own_.launches == 1;
  const bool measures_later =
      own_.launches > kFirst && times.variant.later.count() < kMeasured && may_lose(0, times);
  if (!measures_first && (is_rare || !measures_later)) return Next::Variant;
  is_measuring_ = true;
  is_first_measured_ = measures_first;
  return Next::MeasuredVariant;
}

uint64_t GuardChoice::settled_launches() const {
  constexpr uint64_t kLater = 16;  // a trial may come after one in so many more launches than it could
  if (is_measuring_ || own_.launches <= kFirst + 1) return 0;
  if (is_decided_) return measured_again_after_ - since_decision_;
  return knows_variant(all()) ? own_.launches / kLater : 0;
}

void GuardChoice::did_not_ask(uint64_t launches) {
  own_.launches += launches;
  since_decision_ += launches;
}

void GuardChoice::counted(uint64_t children) {
  is_measuring_ = false;
  own_.children = std::max(own_.children, children);
  ++own_.counted;
}

// A form took so long, of which earlier runs know `earlier`.
void GuardChoice::took(double ms, const FormTimes& earlier, FormTimes& own) {
  is_measuring_ = false;
  if (!is_first_measured_) own_.lost_ms += kMeasuringMs;
  check_told(ms, is_first_measured_ ? earlier.first : earlier.later);
  (is_first_measured_ ? own.first : own.later).add(ms);
}

void GuardChoice::variant_took(double ms) { took(ms, earlier_.variant, own_.variant); }

void GuardChoice::original_took(double ms) {
  took(ms, earlier_.original, own_.original);
  has_run_original_ = true;
  if (is_decided_) return;
  ++trials_;
  const GuardTimes times = all();
  if (!is_first_measured_) {
    own_.lost_ms += added_ms(ms, times.variant.later.typical());
    return decide_by_later(times);
  }
  const double lost = added_ms(ms, variant_ms());
  if (is_launched_rarely() && own_.launches <= kFirst) {
    own_.lost_ms += lost;
    return decide_by_first(times);
  }
  // CUDA's set-up was not known before, and no later trial pays for it. The launches are like those of later
  // trials.
  const double by_launches = std::min(lost, launches_ms());
  own_.lost_ms += by_launches;
  set_up_ms_ += lost - by_launches;
}

// A told decision is given up if the times that it came from are not true here.
void GuardChoice::check_told(double ms, const Samples& told) {
  if (!is_told_ || told.empty()) return;
  if (ms < told.typical() * kOtherTime && ms * kOtherTime > told.typical()) return;
  begin_again();
}

void GuardChoice::begin_again() {
  replaces_ = true;
  is_decided_ = is_told_ = by_first_ = false;
  since_decision_ = 0;
  for (GuardTimes* const times : {&earlier_, &own_}) {
    times->variant = times->original = {};
    times->children = 0;
    times->counted = 0;
  }
}

GuardTimes GuardChoice::all() const {
  GuardTimes times = earlier_;
  times.add(own_, false);
  return times;
}

bool GuardChoice::is_launched_rarely() const {
  return earlier_.runs != 0 && earlier_.launches_a_run() <= static_cast<double>(kFirst);
}

uint64_t GuardChoice::children() const { return std::max(earlier_.children, own_.children); }

bool GuardChoice::knows_variant(const GuardTimes& times) const {
  return is_launched_rarely() && own_.launches <= kFirst ? !times.variant.first.empty()
                                                         : times.variant.later.count() >= kMeasured;
}

bool GuardChoice::may_try_original(const GuardTimes& times) const {
  const Samples& known = has_run_original_ ? times.original.later : times.original.first;
  return may_lose(known.empty() ? launches_ms() : added_ms(known.typical(), variant_ms()), times);
}

// The most that CUDA takes to launch the children from the device.
double GuardChoice::launches_ms() const {
  return static_cast<double>(std::max<uint64_t>(children(), 1)) * kLaunchMs;
}

// True if so much more, and a measurement, may be lost by trying. Where no time is known, there must be one
// first.
bool GuardChoice::may_lose(double ms, const GuardTimes& times) const {
  const Samples& known = times.variant.later.empty() ? times.variant.first : times.variant.later;
  if (known.empty()) return true;
  const double spent = earlier_.spent_ms + known.typical() * static_cast<double>(own_.launches);
  return earlier_.lost_ms + own_.lost_ms + ms + kMeasuringMs <= kMostLost * spent;
}

// One trial is enough if it leaves no doubt.
void GuardChoice::decide_by_first(const GuardTimes& times) {
  const double variant = times.variant.first.typical(), original = times.original.first.typical();
  if (times.variant.first.empty() || times.original.first.empty()) return;
  const bool is_clear = original > kMuchSlower * variant || variant > kMuchSlower * original;
  if (times.original.first.count() < kMeasured && !is_clear) return;
  decide(original < kFaster * variant);
  by_first_ = true;
}

void GuardChoice::decide_by_later(const GuardTimes& times) {
  const Samples &variant = times.variant.later, &original = times.original.later;
  if (variant.empty() || original.empty()) return;
  const bool is_much_slower = original.count() > 1 && original.typical() > kMuchSlower * variant.typical();
  if (original.count() < kMeasured && !is_much_slower) return;
  // A process that has run the original need not set it up any more.
  if (has_run_original_ || own_.launches > 0) return decide(original.typical() < kFaster * variant.typical());
  const double launches = times.launches_a_run();
  decide(run_ms(times.original, launches) < kFaster * run_ms(times.variant, launches));
}

void GuardChoice::decide(bool takes_original) {
  is_decided_ = true;
  since_decision_ = 0;
  takes_original_ = takes_original;
  // Until the original may be tried again, the variant would run, which is slower.
  if (takes_original || own_.launches == 0) measured_again_after_ = kMeasureAgain;
  if (own_.launches > 0) own_.checked = now_;
}

double GuardChoice::variant_ms() const {
  const GuardTimes times = all();
  return times.variant.later.empty() || by_first_ ? times.variant.first.typical()
                                                  : times.variant.later.typical();
}

double GuardChoice::original_ms() const {
  const GuardTimes times = all();
  return times.original.later.empty() || by_first_ ? times.original.first.typical()
                                                   : times.original.later.typical();
}

std::optional<GuardTimes> GuardChoice::found() const {
  const bool has_measured = !own_.variant.first.empty() || !own_.variant.later.empty() ||
                            !own_.original.first.empty() || !own_.original.later.empty();
  if (!has_measured && own_.counted == 0) return std::nullopt;
  GuardTimes found = own_;
  found.runs = 1;
  found.lost_ms = lost_ms();
  found.spent_ms = (is_original() ? original_ms() : variant_ms()) * static_cast<double>(own_.launches);
  return found;
}

}  // namespace klap::runtime
