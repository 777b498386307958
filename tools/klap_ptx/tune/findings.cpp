#include "klap_ptx/tune/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace klap::tool {
namespace {

using nlohmann::json;

constexpr size_t kMostClustered = 1000;
constexpr size_t kGroups = 4;

// How many of the group's samples have the candidate.
size_t count_with(const Group& group, const std::vector<Sample>& samples, size_t candidate) {
  return static_cast<size_t>(std::ranges::count_if(group.members, [&](size_t member) {
    const Configuration& configuration = samples[member].configuration;
    return std::ranges::find(configuration, candidate) != configuration.end();
  }));
}

std::vector<GroupSummary> summaries(const std::vector<Merge>& merges, const std::vector<Sample>& samples,
                                    const std::vector<Candidate>& tried) {
  std::vector<GroupSummary> out;
  for (const Group& group : top_groups(merges, kGroups)) {
    const auto [fastest, slowest] = std::ranges::minmax_element(group.members);
    out.push_back({group, samples[*fastest].ms, samples[*slowest].ms, {}, {}});
    if (out.size() == 1) continue;
    const Group& parent = out[group.parent].group;
    for (size_t i = 0; i < tried.size(); ++i) {
      const size_t here = count_with(group, samples, i), above = count_with(parent, samples, i);
      if (here == group.members.size() && above != parent.members.size())
        out.back().with.push_back(tried[i].text());
      if (here == 0 && above != 0) out.back().without.push_back(tried[i].text());
    }
  }
  return out;
}

// The first few of a list, and how many there are more.
std::string some_of(const std::vector<std::string>& all) {
  constexpr size_t kMost = 3;
  if (all.size() <= kMost) return fmt::format("{}", fmt::join(all, ", "));
  return fmt::format("{} and {} more", fmt::join(all.begin(), all.begin() + kMost, ", "), all.size() - kMost);
}

void print_importance(const Findings& found) {
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [subject, share] : found.importance)
    if (share >= 0.01) ranked.emplace_back(share, subject);
  std::ranges::sort(ranked, std::greater());
  std::vector<std::string> parts;
  parts.reserve(ranked.size());
  for (const auto& [share, subject] : ranked)
    parts.push_back(fmt::format("{} {:.0f} %", subject, 100 * share));
  const char* const verb = found.basis == Basis::Settings ? "depends on" : "goes with the counters";
  if (!parts.empty()) fmt::print("  Its time {}: {}\n", verb, fmt::join(parts, ", "));
}

void print_components(const Findings& found) {
  constexpr size_t kMost = 3;
  const Components& all = found.components;
  if (all.components.empty()) return;
  fmt::print("  The {} differ the most along these principal components, of {}:\n",
             found.basis == Basis::Settings ? "samples" : "samples' counters", all.components.size());
  for (size_t i = 0; i < std::min(kMost, all.components.size()); ++i)
    fmt::print("    {:.0f} % of the variance: {}\n", 100 * all.components[i].share,
               fmt::join(heaviest(all, all.components[i]), ", "));
}

void print_groups(const Findings& found) {
  if (found.groups.empty()) return;
  fmt::print("  Samples with like {} make these groups:\n", name_of(found.basis));
  for (const GroupSummary& group : found.groups)
    fmt::print("    {:{}}{} sample{}, {:.4f} to {:.4f} ms{}\n", "", 2 * group.group.depth,
               group.group.members.size(), group.group.members.size() == 1 ? "" : "s", group.fastest_ms,
               group.slowest_ms, group.group.depth == 0 ? "" : ": " + text(group));
}

json to_json(const Components& all) {
  json out = json::array();
  for (const Component& component : all.components) {
    json weights = json::object();
    for (size_t i = 0; i < all.names.size(); ++i) weights[all.names[i]] = component.weights[i];
    out.push_back({{"share", component.share}, {"weights", std::move(weights)}});
  }
  return out;
}

json clusters_json(const Findings& found) {
  json merges = json::array(), groups = json::array();
  for (const Merge& merge : found.merges)
    merges.push_back({{"first", merge.first},
                      {"second", merge.second},
                      {"distance", merge.distance},
                      {"size", merge.size}});
  for (const GroupSummary& group : found.groups)
    groups.push_back({{"depth", group.group.depth},
                      {"samples", group.group.members},
                      {"fastest_ms", group.fastest_ms},
                      {"slowest_ms", group.slowest_ms},
                      {"with", group.with},
                      {"without", group.without}});
  return {{"merges", std::move(merges)}, {"groups", std::move(groups)}};
}

SampleTable table_of(const Findings& found, const std::vector<Candidate>& tried) {
  return found.basis == Basis::Settings ? settings_table(found.samples, tried)
                                        : counters_table(found.samples, found.counters);
}

void add_model(Findings& found, const std::vector<Candidate>& tried) {
  const SampleTable table = table_of(found, tried);
  found.held_out = test_model(table);
  if (found.held_out.pairs.empty()) return;
  found.importance = importance(table);
  find_alike(found, tried);
}

}  // namespace

const char* name_of(Basis basis) { return basis == Basis::Settings ? "settings" : "performance counters"; }

Findings find(std::vector<Sample> samples, const std::vector<Candidate>& tried, bool with_model) {
  Findings out;
  out.samples = std::move(samples);
  if (!with_model) return out;
  add_model(out, tried);
  return out;
}

Findings find_by_counters(const std::vector<Sample>& samples,
                          const std::map<Configuration, CounterValues>& counted,
                          const std::vector<Candidate>& tried) {
  Findings out;
  out.basis = Basis::Counters;
  for (const Sample& sample : samples) {
    const auto counters = counted.find(sample.configuration);
    if (counters == counted.end()) continue;
    out.samples.push_back(sample);
    out.counters.push_back(counters->second);
  }
  if (!table_of(out, tried).names.empty()) add_model(out, tried);
  return out;
}

void find_alike(Findings& found, const std::vector<Candidate>& tried) {
  SampleTable table = table_of(found, tried);
  found.components = principal_components(table);
  if (table.rows.size() > kMostClustered) {
    table.rows.resize(kMostClustered);
    table.times.resize(kMostClustered);
  }
  found.merges = cluster(table);
  found.groups = summaries(found.merges, found.samples, tried);
}

std::string text(const GroupSummary& group) {
  std::vector<std::string> parts;
  if (!group.with.empty()) parts.push_back("with " + some_of(group.with));
  if (!group.without.empty()) parts.push_back("without " + some_of(group.without));
  return parts.empty() ? "alike in nothing else" : fmt::format("{}", fmt::join(parts, ", "));
}

void print_findings(const Findings& found) {
  if (found.held_out.pairs.empty()) return;
  const char* const what =
      found.basis == Basis::Settings
          ? "{} configurations were measured. A model of four in five predicts the others"
          : "The counters of {} configurations were read. From these, a model of four in five predicts the "
            "times of the others";
  fmt::print("  {} with an error of {:.1f} % in the middle, and of {:.1f} % or less for nine in ten\n",
             fmt::format(fmt::runtime(what), found.samples.size()), 100 * found.held_out.median_error,
             100 * found.held_out.error_of_nine_in_ten);
  print_importance(found);
  print_components(found);
  print_groups(found);
}

json to_json(const Findings& found, const std::vector<Candidate>& tried) {
  json samples = json::array(), pairs = json::array();
  for (size_t i = 0; i < found.samples.size(); ++i) {
    const Sample& sample = found.samples[i];
    samples.push_back({{"settings", values(sample.configuration, tried)}, {"ms", sample.ms}});
    if (found.basis == Basis::Counters) samples.back()["counters"] = found.counters[i];
  }
  for (const HeldOut::Pair& pair : found.held_out.pairs)
    pairs.push_back({{"settings", values(found.samples[pair.sample].configuration, tried)},
                     {"measured_ms", pair.measured_ms},
                     {"predicted_ms", pair.predicted_ms}});
  return {{"samples", std::move(samples)},
          {"held_out", std::move(pairs)},
          {"median_error", found.held_out.median_error},
          {"error_of_nine_in_ten", found.held_out.error_of_nine_in_ten},
          {"importance", found.importance},
          {"components", to_json(found.components)},
          {"clusters", clusters_json(found)}};
}

}  // namespace klap::tool
