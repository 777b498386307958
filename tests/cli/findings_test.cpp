// The findings of a tuning about its samples: principal components, clusters and groups.
#include "klap_ptx/tune/findings.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "klap_ptx/tune/combinations.h"
#include "some_settings.h"

namespace klap::tool {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kRounding = 1e-9;

TEST(TuneTable, HasAColumnForEachSetting) {
  const std::vector<Candidate> tried = {{"", "threshold", "64"}, {"", "optimise", "-flatten"}};
  const SampleTable table = settings_table({{{}, 3}, {{1}, 2}, {{0, 1}, 1}}, tried);
  EXPECT_THAT(table.names, ElementsAre("threshold = 64", "optimise = -flatten"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre(0, 0), ElementsAre(0, 1), ElementsAre(1, 1)));
  EXPECT_THAT(table.times, ElementsAre(3, 2, 1));
}

TEST(TuneTable, HasTheCountersThatAllSamplesHave) {
  const SampleTable table = counters_table({{{}, 3}, {{1}, 2}}, {{{"a", 1}, {"b", 2}}, {{"b", 4}, {"c", 5}}});
  EXPECT_THAT(table.names, ElementsAre("b"));
  EXPECT_THAT(table.subjects, ElementsAre("b"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre(2), ElementsAre(4)));
  EXPECT_THAT(table.times, ElementsAre(3, 2));
  EXPECT_THAT(counters_table({}, {}).names, IsEmpty());
}

TEST(TuneTable, IsScaledAndLosesWhatNeverChanges) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const SampleTable scaled =
      standardised({{"same", "bytes", "unknown"}, {{7, 1e6, 1}, {7, 3e6, none}}, {1, 2}});
  EXPECT_THAT(scaled.names, ElementsAre("bytes"));
  EXPECT_THAT(scaled.rows,
              ElementsAre(ElementsAre(DoubleNear(-1, kRounding)), ElementsAre(DoubleNear(1, kRounding))));
  EXPECT_THAT(scaled.times, ElementsAre(1, 2));
}

// Two variables with a correlation of 0.6 have components with 0.8 and 0.2 of the variance, along the
// diagonals. One of its own is a third, with the variance of one variable. The units of the first two differ.
TEST(TuneComponents, AreThoseOfAKnownTable) {
  SampleTable table = {{"a", "b", "own", "constant"}, {}, {}};
  for (const auto& [a, b, times] : {std::tuple(1, 1, 8), std::tuple(1, -1, 2)})
    for (int i = 0; i < times; ++i)
      for (const int sign : {1, -1})
        for (const int own : {1, -1}) {
          table.rows.push_back({1.0 * sign * a, 1000.0 * sign * b, 1.0 * own, 5});
          table.times.push_back(1);
        }
  const Components found = principal_components(table);
  EXPECT_THAT(found.names, ElementsAre("a", "b", "own"));
  ASSERT_EQ(found.components.size(), 3u);
  const double half = std::sqrt(0.5);
  EXPECT_THAT(found.components[0].share, DoubleNear(1.6 / 3, kRounding));
  EXPECT_THAT(
      found.components[0].weights,
      ElementsAre(DoubleNear(half, kRounding), DoubleNear(half, kRounding), DoubleNear(0, kRounding)));
  EXPECT_THAT(found.components[1].share, DoubleNear(1.0 / 3, kRounding));
  EXPECT_THAT(found.components[1].weights[2], DoubleNear(1, kRounding));
  EXPECT_THAT(found.components[2].share, DoubleNear(0.4 / 3, kRounding));
  EXPECT_THAT(found.components[2].weights[0] * found.components[2].weights[1], DoubleNear(-0.5, kRounding));
  EXPECT_THAT(found.components[0].scores[0], DoubleNear(2 * half, kRounding)) << "a = b = 1";
  EXPECT_THAT(heaviest(found, found.components[0]), ElementsAre("a (+0.71)", "b (+0.71)"));
  EXPECT_THAT(heaviest(found, found.components[1]), ElementsAre("own (+1.00)"));
}

// The scores along each component have the variance that its share says, and no two go together.
TEST(TuneComponents, DoNotGoTogether) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise;
  SampleTable table;
  constexpr size_t kVariables = 30, kSamples = 100;
  for (size_t i = 0; i < kVariables; ++i) table.names.push_back(std::to_string(i));
  for (size_t i = 0; i < kSamples; ++i) {
    const double common = noise(random);
    for (auto& row = table.rows.emplace_back(); row.size() < kVariables;)
      row.push_back(noise(random) + (row.size() % 3 == 0 ? 2 * common : 0));
    table.times.push_back(1);
  }
  const std::vector<Component> found = principal_components(table).components;
  ASSERT_EQ(found.size(), kVariables);
  double all = 0;
  for (const Component& one : found) {
    all += one.share;
    const auto [least, most] = std::ranges::minmax_element(one.weights);
    EXPECT_GE(*most, -*least) << "the largest weight is positive";
    for (const Component& other : found) {
      double product = 0;
      for (size_t i = 0; i < kSamples; ++i) product += one.scores[i] * other.scores[i] / kSamples;
      EXPECT_NEAR(product, &one == &other ? one.share * kVariables : 0, kRounding);
    }
  }
  EXPECT_NEAR(all, 1, kRounding);
  EXPECT_GT(found[0].share, found[1].share * 3);
}

TEST(TuneComponents, AreNoneWhereNothingChanges) {
  EXPECT_THAT(principal_components({{"a"}, {{1}, {1}}, {1, 2}}).components, IsEmpty());
  EXPECT_THAT(principal_components({}).components, IsEmpty());
}

std::vector<size_t> nodes(const std::vector<Merge>& merges) {
  std::vector<size_t> out;
  for (const Merge& merge : merges) out.insert(out.end(), {merge.first, merge.second, merge.size});
  return out;
}

// Samples on a line at 10, 0, 1, 10.9 and 30: two pairs, then those, and the last one alone. The distance of
// the pairs is the average of 10, 10.9, 9 and 9.9; the farthest or nearest samples would say 10.9 or 9.
TEST(TuneClusters, AreTheTreeOfSamplesOnALine) {
  const std::vector<double> places = {10, 0, 1, 10.9, 30};
  SampleTable table = {{"place"}, {}, {1, 1, 1, 1, 1}};
  double sum = 0, squares = 0;
  for (const double place : places) {
    table.rows.push_back({place});
    sum += place / 5;
    squares += place * place / 5;
  }
  const double unit = 1 / std::sqrt(squares - sum * sum);
  const std::vector<Merge> merges = cluster(table);
  EXPECT_THAT(nodes(merges), ElementsAre(0, 3, 2, 1, 2, 2, 5, 6, 4, 7, 4, 5));
  ASSERT_EQ(merges.size(), 4u);
  EXPECT_NEAR(merges[0].distance, 0.9 * unit, kRounding);
  EXPECT_NEAR(merges[2].distance, 9.95 * unit, kRounding);
  EXPECT_NEAR(merges[3].distance, 24.525 * unit, kRounding);
  EXPECT_THAT(members(merges).back(), ElementsAre(0, 3, 1, 2, 4));

  const std::vector<Group> groups = top_groups(merges, 3);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_THAT(groups[0].members.size(), 5u);
  EXPECT_THAT(groups[1].members, ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(groups[2].members, ElementsAre(0, 3));
  EXPECT_EQ(groups[2].parent, 1u);
  EXPECT_EQ(groups[2].depth, 2u);
  EXPECT_FALSE(groups[2].is_split);
  EXPECT_THAT(groups[4].members, ElementsAre(4));
  EXPECT_EQ(groups[4].parent, 0u);
  EXPECT_EQ(top_groups(merges, 100).size(), 9u) << "no more than there are nodes";
}

// The method that is written down: always the two groups that are the closest, by averages over all pairs.
std::vector<double> naive_distances(const SampleTable& table) {
  const SampleTable scaled = standardised(table);
  const auto distance = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < scaled.names.size(); ++k)
      sum += std::pow(scaled.rows[i][k] - scaled.rows[j][k], 2);
    return std::sqrt(sum);
  };
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < scaled.rows.size(); ++i) groups.push_back({i});
  std::vector<double> out;
  while (groups.size() > 1) {
    std::tuple<double, size_t, size_t> best = {std::numeric_limits<double>::infinity(), 0, 0};
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size(); ++b) {
        double sum = 0;
        for (const size_t i : groups[a])
          for (const size_t j : groups[b]) sum += distance(i, j);
        best = std::min(best, {sum / static_cast<double>(groups[a].size() * groups[b].size()), a, b});
      }
    const auto [least, a, b] = best;
    out.push_back(least);
    groups[a].insert(groups[a].end(), groups[b].begin(), groups[b].end());
    groups.erase(groups.begin() + static_cast<ptrdiff_t>(b));
  }
  return out;
}

TEST(TuneClusters, AreThoseOfAverageLinkage) {
  std::mt19937 random(1);
  SampleTable table = {{"a", "b", "c"}, {}, std::vector<double>(40, 1)};
  for (size_t i = 0; i < 40; ++i)
    table.rows.push_back({std::normal_distribution()(random), std::normal_distribution()(random),
                          std::uniform_real_distribution(0.0, 9.0)(random)});
  std::vector<double> distances;
  for (const Merge& merge : cluster(table)) distances.push_back(merge.distance);
  EXPECT_THAT(distances, testing::Pointwise(testing::DoubleNear(kRounding), naive_distances(table)));
}

// Each node is below one other, whatever distances are equal.
TEST(TuneClusters, AreATreeIfSamplesAreEqual) {
  SampleTable table = {{"a", "b"}, {}, std::vector<double>(24, 1)};
  for (size_t i = 0; i < 24; ++i) table.rows.push_back({i % 2 == 0 ? 1.0 : 0.0, i % 3 == 0 ? 1.0 : 0.0});
  const std::vector<Merge> merges = cluster(table);
  ASSERT_EQ(merges.size(), 23u);
  std::set<size_t> below;
  for (size_t i = 0; i < merges.size(); ++i)
    for (const size_t node : {merges[i].first, merges[i].second}) {
      EXPECT_LT(node, 24 + i);
      EXPECT_TRUE(below.insert(node).second);
    }
  EXPECT_EQ(merges.back().size, 24u);
  const std::vector<size_t> all = members(merges).back();
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 24u);
  EXPECT_THAT(cluster({{"a"}, {{1}, {1}}, {1, 1}}), IsEmpty()) << "nothing changes";
}

// Launches on the device are slow, and those of a warp are fast.
std::vector<Sample> all_samples() {
  std::vector<Sample> out;
  Combinations all(some_settings(), {});
  while (const auto next = all.next()) {
    const auto has = [&](size_t i) { return std::ranges::count(*next, i) > 0; };
    out.push_back({*next, (has(0) ? 8.0 : 1.0) * (has(2) ? 0.5 : 1.0) + (has(4) ? 0.01 : 0.0)});
  }
  std::ranges::stable_sort(out, {}, &Sample::ms);
  return out;
}

TEST(TuneFindings, SayWhatSetsAGroupApart) {
  const Findings found = find(all_samples(), some_settings(), true);
  ASSERT_FALSE(found.groups.empty());
  EXPECT_EQ(found.groups[0].group.members.size(), 24u);
  EXPECT_EQ(found.groups[0].fastest_ms, 0.5);
  EXPECT_EQ(found.groups[0].slowest_ms, 8.01);
  EXPECT_THAT(found.groups[0].with, IsEmpty()) << "there is nothing that it is set apart from";
  size_t smallest = 0;
  for (size_t i = 1; i < found.groups.size(); ++i) {
    const GroupSummary& group = found.groups[i];
    EXPECT_NE(text(group), "alike in nothing else");
    for (const std::string& setting : group.with)
      for (const size_t member : group.group.members)
        EXPECT_THAT(text(found.samples[member].configuration, some_settings()) + ",",
                    testing::HasSubstr(setting.substr(setting.rfind(' ') + 1)));
    if (!group.group.is_split) smallest += group.group.members.size();
  }
  EXPECT_EQ(smallest, 24u) << "each sample is in one of those that are not split";
  EXPECT_EQ(text(GroupSummary{{}, 0, 0, {"a", "b"}, {"c", "d", "e", "f", "g"}}),
            "with a, b, without c, d, e and 2 more");
}

TEST(TuneFindings, BecomeJson) {
  const Findings findings = find(all_samples(), some_settings(), true);
  const nlohmann::json found = to_json(findings, some_settings());
  const Component& first = findings.components.components[0];
  EXPECT_EQ(found["components"][0]["share"], first.share);
  EXPECT_EQ(found["components"][0]["weights"][findings.components.names[1]], first.weights[1]);
  const Merge& root = findings.merges.back();
  EXPECT_EQ(found["clusters"]["merges"].back(), nlohmann::json({{"first", root.first},
                                                                {"second", root.second},
                                                                {"distance", root.distance},
                                                                {"size", root.size}}));
  const GroupSummary& group = findings.groups.back();
  EXPECT_EQ(found["clusters"]["groups"].back(), nlohmann::json({{"depth", group.group.depth},
                                                                {"samples", group.group.members},
                                                                {"fastest_ms", group.fastest_ms},
                                                                {"slowest_ms", group.slowest_ms},
                                                                {"with", group.with},
                                                                {"without", group.without}}));
  EXPECT_EQ(found["samples"].size(), 24u);
  EXPECT_EQ(found["clusters"]["merges"].size(), 23u);
  EXPECT_EQ(found["clusters"]["groups"][0]["samples"].size(), 24u);
  EXPECT_EQ(found["components"].size(), 5u) << "one a setting, but for the original";
  EXPECT_EQ(found["components"][0]["weights"].size(), 5u);
  const nlohmann::json few = to_json(find(all_samples(), some_settings(), false), some_settings());
  EXPECT_EQ(few["samples"].size(), 24u);
  EXPECT_THAT(few["components"], IsEmpty());
}

// Bytes decide the time. Warps follow the settings and have no part in it; two samples were not counted.
TEST(TuneFindings, SayWhichCountersTheTimeGoesWith) {
  const std::vector<Sample> samples = all_samples();
  std::map<Configuration, CounterValues> counted;
  for (size_t i = 2; i < samples.size(); ++i) {
    const bool is_odd = samples[i].configuration.size() % 2 == 1;
    counted[samples[i].configuration] = {{"bytes", 1e9 * samples[i].ms}, {"warps", is_odd ? 64 : 32}};
  }
  const Findings found = find_by_counters(samples, counted, some_settings());
  EXPECT_EQ(found.samples.size(), 22u);
  EXPECT_EQ(found.held_out.pairs.size(), 4u);
  EXPECT_LT(found.held_out.median_error, 0.3);
  EXPECT_GT(found.importance.at("bytes"), 0.9);
  EXPECT_THAT(found.components.names, ElementsAre("bytes", "warps"));
  EXPECT_EQ(found.merges.size(), 21u);
  EXPECT_TRUE(std::ranges::any_of(found.groups, [](const GroupSummary& group) {
    return text(group).find("launcher = device") != std::string::npos;
  })) << "groups of counters are told by their settings";
  const nlohmann::json out = to_json(found, some_settings());
  EXPECT_EQ(out["samples"].size(), 22u);
  EXPECT_EQ(out["samples"][0]["counters"], counted.at(samples[2].configuration));
  EXPECT_TRUE(find_by_counters(samples, {}, some_settings()).held_out.pairs.empty());
  EXPECT_TRUE(find_by_counters(samples, {{{}, {{"bytes", 1}}}}, some_settings()).merges.empty()) << "too few";
}

// The times of the whole table are kept, but a tree of all pairs would take too long.
TEST(TuneFindings, ClusterTheFastestOfManySamples) {
  std::vector<Candidate> many;
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
  many.reserve(keys.size());
  for (const std::string& key : keys) many.push_back({"", key, "1"});
  Combinations all(many, {});
  std::vector<Sample> samples;
  for (double ms = 1; const auto next = all.next(); ++ms)
    if (ms <= 1100) samples.push_back({*next, ms});
  Findings found;
  found.samples = samples;
  find_alike(found, many);
  EXPECT_EQ(found.components.components[0].scores.size(), 1100u);
  EXPECT_EQ(found.merges.size(), 999u);
  EXPECT_EQ(found.groups[0].slowest_ms, 1000);
}

}  // namespace
}  // namespace klap::tool
