#include "klap_ptx/tune/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace klap::tool {

bool Candidate::is_original() const { return key == "granularity" && value == "none"; }

std::map<std::string, std::string> Candidate::environment() const {
  if (is_original()) return {{"KLAP_GUARD", "original"}};
  return {{std::string(variable), std::string(value)}};
}

std::string Candidate::text() const { return fmt::format("{} = {}", key, value); }

std::string_view Candidate::subject() const {
  if (key != "optimise") return key;
  const size_t begin = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
  return value.substr(begin, value.find('=') - begin);
}

std::map<std::string, std::string> values(const Configuration& configuration,
                                          const std::vector<Candidate>& tried) {
  std::map<std::string, std::string> out;
  for (const size_t i : configuration) {
    std::string& value = out[std::string(tried.at(i).key)];
    value += (value.empty() ? "" : ",") + std::string(tried.at(i).value);
  }
  return out;
}

std::string text(const Configuration& configuration, const std::vector<Candidate>& tried) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values(configuration, tried))
    parts.push_back(fmt::format("{} = {}", key, value));
  return parts.empty() ? "the default" : fmt::format("{}", fmt::join(parts, " and "));
}

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = {{"KLAP_GRANULARITY", "granularity", "none"},
                                             {"KLAP_GRANULARITY", "granularity", "block"},
                                             {"KLAP_GRANULARITY", "granularity", "warp"},
                                             {"KLAP_GRANULARITY", "granularity", "multiblock"},
                                             {"KLAP_LAUNCHER", "launcher", "device"},
                                             {"KLAP_LAUNCHER", "launcher", "fused"},
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
                                             {"KLAP_OPTIMISE", "optimise", "split_ranges=all"},
                                             {"KLAP_OPTIMISE", "optimise", "part_elements=64"},
                                             {"KLAP_OPTIMISE", "optimise", "part_elements=1024"},
                                             {"KLAP_OPTIMISE", "optimise", "+merge_parts"},
                                             {"KLAP_OPTIMISE", "optimise", "+stream_loads"},
                                             {"KLAP_OPTIMISE", "optimise", "occupancy=all"},
                                             {"KLAP_PROMOTION", "promotion", "PA"},
                                             {"KLAP_PROMOTION", "promotion", "PAO"}};
  return all;
}

}  // namespace klap::tool
