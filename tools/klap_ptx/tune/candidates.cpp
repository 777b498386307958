#include "klap_ptx/tune/candidates.h"

#include <fmt/format.h>

namespace klap::tool {

std::string Candidate::text() const { return fmt::format("{} = {}", key, value); }

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = {{"KLAP_GRANULARITY", "granularity", "block"},
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
                                             {"KLAP_PROMOTION", "promotion", "PA"},
                                             {"KLAP_PROMOTION", "promotion", "PAO"}};
  return all;
}

}  // namespace klap::tool
