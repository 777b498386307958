#include "runtime/forms/form_choice.h"

#include <algorithm>

#include "jit/data/form_model.h"

namespace klap::runtime {

FormChoice::Next FormChoice::next() {
  if (since_look_ >= until_look_) {
    since_look_ = 0;
    return Next::LookedAt;
  }
  ++since_look_;
  return takes_blocks_ ? Next::Blocks : Next::Flat;
}

// Sizes near the limit must not change the form again and again.
bool FormChoice::looked(const SizesSeen& seen) {
  constexpr double kHysteresis = 0.05;
  until_look_ = seen.lanes >= kFewLanes ? kLaunchesBetweenLooks
                                        : std::min(2 * until_look_ + 1, kMostLaunchesBetweenLooks);
  if (seen.threads == 0) return false;
  const double limit = jit::kLeastLanesUsed - (takes_blocks_ ? kHysteresis : 0);
  const bool before = takes_blocks_;
  takes_blocks_ = seen.lanes_used() >= limit;
  return takes_blocks_ != before;
}

}  // namespace klap::runtime
