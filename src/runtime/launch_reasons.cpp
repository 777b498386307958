// The list of reasons as an array, for printing.
#include "runtime/launch_reasons.h"

#include <array>

namespace klap::runtime {

std::span<const LaunchReason> launch_reasons() {
#define KLAP_LAUNCH_REASON(identifier, text, meaning) reasons::identifier,
  static constexpr std::array kAll{KLAP_LAUNCH_REASONS(KLAP_LAUNCH_REASON)};
#undef KLAP_LAUNCH_REASON
  return kAll;
}

}  // namespace klap::runtime
