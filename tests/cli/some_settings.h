// Settings for tests of what tuning does with any settings: two launchers, three granularities, two
// optimisations, and the program's own kernel.
#pragma once

#include <vector>

#include "klap_ptx/tune/candidates.h"

namespace klap::tool {

inline const std::vector<Candidate>& some_settings() {
  static const std::vector<Candidate> all = {
      {"KLAP_LAUNCHER", "launcher", "device"},     {"KLAP_GRANULARITY", "granularity", "none"},
      {"KLAP_GRANULARITY", "granularity", "warp"}, {"KLAP_GRANULARITY", "granularity", "block"},
      {"KLAP_OPTIMISE", "optimise", "-flatten"},   {"KLAP_OPTIMISE", "optimise", "unroll=8"}};
  return all;
}

}  // namespace klap::tool
