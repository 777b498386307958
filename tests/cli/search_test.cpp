// The search for the best of several settings together, on kernels whose times a formula gives.
#include "klap_ptx/tune/search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "klap_ptx/tune/time_model.h"

namespace klap::tool {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;

// Two thresholds, two ways to unroll, three switches and the program's own kernel.
const std::vector<Candidate>& tried() {
  static const std::vector<Candidate> all = {
      {"KLAP_GRANULARITY", "granularity", "none"}, {"KLAP_GRANULARITY", "granularity", "warp"},
      {"KLAP_THRESHOLD", "threshold", "16"},       {"KLAP_THRESHOLD", "threshold", "64"},
      {"KLAP_OPTIMISE", "optimise", "unroll=off"}, {"KLAP_OPTIMISE", "optimise", "unroll=8"},
      {"KLAP_OPTIMISE", "optimise", "-flatten"},   {"KLAP_OPTIMISE", "optimise", "-occupancy"}};
  return all;
}
bool has(const Configuration& configuration, size_t candidate) {
  return std::ranges::find(configuration, candidate) != configuration.end();
}

// No setting helps by itself: a threshold pays only if children are not flattened.
double alone_useless(const Configuration& c) {
  double ms = 1;
  if (has(c, 3)) ms *= has(c, 6) ? 0.5 : 1.2;
  if (has(c, 6)) ms *= 1.1;
  if (has(c, 5)) ms *= has(c, 6) && has(c, 3) ? 0.8 : 1.05;
  if (has(c, 1)) ms *= 3;
  if (has(c, 4)) ms *= 1.02;
  return ms;
}

// As klap-ptx tune does it. Returns how many runs the search took.
size_t run(Search& search, const std::function<double(const Configuration&)>& ms, size_t most = 200) {
  search.measured({}, ms({}));
  for (size_t i = 0; i < tried().size(); ++i) search.measured({i}, i == 0 ? 5 : ms({i}));
  for (size_t i = 0; i < most; ++i) {
    const auto next = search.next();
    if (!next) return i;
    search.measured(*next, ms(*next));
  }
  return most;
}

TEST(TuneSearch, FindsSettingsThatHelpOnlyTogether) {
  Search search(tried());
  const size_t runs = run(search, alone_useless);
  EXPECT_THAT(search.samples().front().configuration, testing::IsSupersetOf({3, 5, 6}));
  EXPECT_LT(runs, 60u) << "there are 108 configurations";
}

TEST(TuneSearch, EndsIfNothingHelps) {
  Search search(tried());
  const auto worse_with_each = [](const Configuration& c) { return 1 + 0.1 * static_cast<double>(c.size()); };
  EXPECT_LT(run(search, worse_with_each), 30u);
  EXPECT_EQ(search.next(), std::nullopt) << "it stays over";
  EXPECT_TRUE(search.samples().front().configuration.empty());
}

TEST(TuneSearch, ProposesNothingTwiceAndNoTwoOfASubject) {
  Search search(tried());
  search.measured({}, 1);
  std::set<Configuration> seen;
  for (int i = 0; i < 100; ++i) {
    const auto next = search.next();
    if (!next) break;
    EXPECT_TRUE(seen.insert(*next).second);
    EXPECT_TRUE(std::ranges::is_sorted(*next));
    EXPECT_FALSE(has(*next, 0)) << "the program's own kernel has no settings";
    std::set<std::string_view> subjects;
    for (const size_t candidate : *next) EXPECT_TRUE(subjects.insert(tried()[candidate].subject()).second);
    search.measured(*next, 1.0 / (1 + i));
  }
  EXPECT_GT(seen.size(), 30u) << "each proposal gains";
}

TEST(TuneSearch, ForgetsWhatFailed) {
  Search search(tried());
  run(search, alone_useless);
  const Configuration best = search.samples().front().configuration;
  search.failed(best);
  EXPECT_EQ(search.middle_ms(best), std::nullopt);
  EXPECT_NE(search.samples().front().configuration, best);
}

TEST(TuneSearch, ProposesNothingWithASettingThatFailedAlone) {
  Search search(tried());
  search.failed({3});
  run(search, [](const Configuration& c) { return has(c, 3) ? 0.1 : alone_useless(c); });
  EXPECT_GT(search.proposals(), 10u);
  for (const Sample& sample : search.samples()) EXPECT_FALSE(has(sample.configuration, 3));
}

TEST(TuneSearch, HasNothingToProposeIfThereIsOneSetting) {
  const std::vector<Candidate> one = {{"KLAP_LAUNCHER", "launcher", "device"}};
  Search search(one);
  search.measured({}, 1);
  search.measured({0}, 2);
  EXPECT_EQ(search.next(), std::nullopt);
}

// The third setting saves nothing that can be told from chance.
TEST(TuneSearch, PrefersFewSettings) {
  Search search(tried());
  EXPECT_EQ(search.best(), std::nullopt);
  search.measured({1, 3, 6}, 0.499);
  search.measured({3, 6}, 0.5);
  search.measured({3}, 0.6);
  ASSERT_TRUE(search.best());
  EXPECT_THAT(search.best()->configuration, ElementsAre(3, 6));
}

TEST(TuneSearch, TakesTheMiddleOfSeveralTimes) {
  Search search(tried());
  for (const double ms : {9.0, 1.0, 2.0}) search.measured({2}, ms);
  EXPECT_EQ(search.middle_ms({2}), 2.0);
}

// All configurations but each third.
std::vector<Sample> most_samples() {
  std::vector<Sample> out;
  for (unsigned bits = 0; bits < 1u << 8; ++bits) {
    Configuration configuration;
    std::set<std::string_view> subjects;
    for (size_t i = 1; i < 8; ++i)
      if ((bits >> i & 1) != 0 && subjects.insert(tried()[i].subject()).second) configuration.push_back(i);
    if (bits % 3 != 0) out.push_back({configuration, alone_useless(configuration)});
  }
  return out;
}

TEST(TuneModel, PredictsWhatItHasNotSeen) {
  const TimeModel model(settings_table(most_samples(), tried()));
  for (const Configuration& unseen : {Configuration{1, 3}, Configuration{3, 6}, Configuration{1, 2, 6, 7}})
    EXPECT_NEAR(std::log(model.predict(settings_row(unseen, tried().size())) / alone_useless(unseen)), 0,
                0.15);
  const HeldOut test = test_model(settings_table(most_samples(), tried()));
  EXPECT_GT(test.pairs.size(), 30u);
  EXPECT_LT(test.median_error, 0.03);
  EXPECT_LT(test.error_of_nine_in_ten, 0.15);
  for (const HeldOut::Pair& pair : test.pairs)
    EXPECT_EQ(pair.measured_ms, alone_useless(most_samples()[pair.sample].configuration));
}

TEST(TuneModel, KnowsWhatMatters) {
  const auto shares = importance(settings_table(most_samples(), tried()));
  EXPECT_GT(shares.at("granularity"), shares.at("threshold"));
  EXPECT_GT(shares.at("threshold"), shares.at("occupancy"));
  EXPECT_LT(shares.at("occupancy"), 0.02);
  double all = 0;
  for (const auto& [subject, share] : shares) all += share;
  EXPECT_THAT(all, DoubleNear(1, 1e-9));
}

TEST(TuneModel, IsNotTestedWithFewSamples) {
  EXPECT_TRUE(test_model(settings_table({{{}, 1}, {{1}, 2}}, tried())).pairs.empty());
  EXPECT_EQ(importance(settings_table({{{}, 1}, {{1}, 1}}, tried())).at("granularity"), 0);
}

TEST(TuneCandidates, BecomeValuesOfAConfigFile) {
  EXPECT_EQ(tried()[5].subject(), "unroll");
  EXPECT_EQ(tried()[6].subject(), "flatten");
  EXPECT_THAT(values({3, 5, 6}, tried()),
              ElementsAre(std::pair("optimise", "unroll=8,-flatten"), std::pair("threshold", "64")));
  EXPECT_EQ(text({3, 5}, tried()), "optimise = unroll=8 and threshold = 64");
  EXPECT_EQ(text({}, tried()), "the default");
}

}  // namespace
}  // namespace klap::tool
