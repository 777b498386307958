#include "klap_ptx/tune/candidates.h"

#include <fmt/format.h>

namespace klap::tool {

bool Candidate::is_original() const { return key == "granularity" && value == "none"; }

std::map<std::string, std::string> Candidate::environment() const {
  if (is_original()) return {{"KLAP_GUARD", "original"}};
  return {{std::string(variable), std::string(value)}};
}

std::string Candidate::text() const { return fmt::format("{} = {}", key, value); }

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = {{"KLAP_GRANULARITY", "granularity", "none"},
                                             {"KLAP_GRANULARITY", "granularity", "block"},
                                             {"KLAP_GRANULARITY", "granularity", "warp"},
                                             {"KLAP_GRANULARITY", "granularity", "multiblock"},
                                             {"KLAP_LAUNCHER", "launcher", "device"},
                                             {"KLAP_THRESHOLD", "threshold", "16"},
                                             {"KLAP_THRESHOLD", "threshold", "64"},
                                             {"KLAP_THRESHOLD", "threshold", "off"},
                                             {"KLAP_CONSUMER_THREADS", "consumer_threads", "128"},
                                             {"KLAP_CONSUMER_THREADS", "consumer_threads", "512"},
                                             {"KLAP_OPTIMISE", "optimise", "unroll=off"},
                                             {"KLAP_OPTIMISE", "optimise", "unroll=8"},
                                             {"KLAP_OPTIMISE", "optimise", "split_iterations=all"},
                                             {"KLAP_OPTIMISE", "optimise", "-flatten"},
                                             {"KLAP_OPTIMISE", "optimise", "-occupancy"},
                                             {"KLAP_OPTIMISE", "optimise", "-pack_blocks"},
                                             {"KLAP_OPTIMISE", "optimise", "-split_ranges"},
                                             {"KLAP_PROMOTION", "promotion", "PA"},
                                             {"KLAP_PROMOTION", "promotion", "PAO"}};
  return all;
}

}  // namespace klap::tool
