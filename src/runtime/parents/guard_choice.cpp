#include "runtime/parents/guard_choice.h"

#include <utility>

namespace klap::runtime {
namespace {

// The first launches of a kernel take longer than later ones.
constexpr uint64_t kFirst = 2;
constexpr uint32_t kMeasured = 3;  // launches of each
// CUDA takes up to so long for each launch from the device (src/runtime/README.md).
constexpr double kLaunchMs = 0.007;
constexpr double kMostLost = 0.03;
// The original has to be so much faster, since a measurement is never exact.
constexpr double kFaster = 0.97;
// A trial that takes so much longer need not be repeated more than once.
constexpr double kMuchSlower = 1.3;
constexpr uint64_t kMeasureAgain = 1000;  // after so many launches

}  // namespace

GuardChoice::Next GuardChoice::next(uint64_t most_children) {
  ++launches_;
  if (is_decided_ && ++since_decision_ > kMeasureAgain) {
    is_decided_ = false;
    variant_ = original_ = {};
    children_ = 0;
  }
  if (is_decided_ && takes_original_ && children_ > most_children) is_decided_ = false;
  if (is_decided_) return takes_original_ ? Next::Original : Next::Variant;
  if (is_measuring_ || launches_ <= kFirst) return Next::Variant;
  if (variant_.launches < kMeasured) {
    is_measuring_ = true;
    return Next::MeasuredVariant;
  }
  if (children_ == 0 || children_ > most_children || !may_try_original()) return Next::Variant;
  is_measuring_ = true;
  return Next::MeasuredOriginal;
}

void GuardChoice::variant_took(double ms, uint64_t children) {
  is_measuring_ = false;
  variant_.add(ms);
  children_ = std::max(children_, children);
}

void GuardChoice::original_took(double ms) {
  is_measuring_ = false;
  // The first one may take as long as setting up takes.
  if (!std::exchange(has_run_original_, true)) return;
  original_.add(ms);
  lost_ms_ += std::max(0.0, ms - variant_.ms);
  const bool is_much_slower = original_.launches > 1 && original_.ms > kMuchSlower * variant_.ms;
  if (original_.launches == kMeasured || is_much_slower) decide();
}

bool GuardChoice::may_try_original() const {
  const double costs = original_.launches == 0 ? static_cast<double>(children_) * kLaunchMs
                                               : std::max(0.0, original_.ms - variant_.ms);
  return lost_ms_ + costs <= kMostLost * variant_.ms * static_cast<double>(launches_);
}

void GuardChoice::decide() {
  is_decided_ = true;
  since_decision_ = 0;
  takes_original_ = original_.ms < kFaster * variant_.ms;
}

}  // namespace klap::runtime
