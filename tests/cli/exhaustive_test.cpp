// A search that tries all combinations of settings.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "klap_ptx/tune/combinations.h"
#include "klap_ptx/tune/search.h"
#include "some_settings.h"

namespace klap::tool {
namespace {

TEST(TuneExhaustive, HasEachCombinationOnce) {
  Combinations all(some_settings(), {});
  EXPECT_EQ(all.count(), 24u) << "2 launchers, 3 granularities, 2 and 2 optimisations";
  std::set<Configuration> seen;
  while (const auto next = all.next()) {
    EXPECT_TRUE(seen.insert(*next).second) << text(*next, some_settings());
    EXPECT_TRUE(std::ranges::is_sorted(*next));
    EXPECT_TRUE(all.contains(*next));
    std::set<std::string_view> subjects;
    for (const size_t i : *next) {
      EXPECT_TRUE(subjects.insert(some_settings()[i].subject()).second) << text(*next, some_settings());
      EXPECT_NE(i, 1u) << "the program's own kernel has no settings";
    }
  }
  EXPECT_EQ(seen.size(), 24u);
  EXPECT_EQ(all.next(), std::nullopt) << "it stays over";
  EXPECT_FALSE(all.contains({1}));
}

TEST(TuneExhaustive, HasAnOrderOfItsOwn) {
  Combinations once(candidates(), {}), again(candidates(), {});
  constexpr size_t kFirst = 200;
  std::vector<size_t> used(candidates().size());
  for (size_t i = 0; i < kFirst; ++i) {
    const auto next = once.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next, again.next());
    for (const size_t candidate : *next) ++used[candidate];
  }
  for (size_t i = 0; i < used.size(); ++i)
    EXPECT_TRUE(candidates()[i].is_original() || used[i] > kFirst / 10)
        << candidates()[i].text() << " is as often among the first as others";
}

TEST(TuneExhaustive, TriesWhatTheSearchHasNot) {
  Search search(some_settings());
  search.measured({}, 1);
  for (const size_t i : {0, 1, 2, 3}) search.measured({i}, 1);
  search.failed({4});
  search.measured({5}, 1);
  search.measured({0, 2}, 1);
  search.failed({0, 5});
  EXPECT_EQ(search.coverage().all, 12u) << "what failed alone is in none";
  EXPECT_EQ(search.coverage().tried, 7u) << "not the failed one, and not the original";
  std::set<Configuration> seen;
  while (const auto next = search.next_untried()) {
    EXPECT_TRUE(seen.insert(*next).second);
    EXPECT_EQ(std::ranges::count(*next, 4u), 0);
    EXPECT_NE(*next, (Configuration{0, 2}));
    EXPECT_NE(*next, (Configuration{0, 5}));
    seen.size() % 2 == 0 ? search.measured(*next, 1) : search.failed(*next);
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(search.coverage().tried, 12u);
}

TEST(TuneExhaustive, KnowsHowMuchTheModelProposed) {
  Search search(some_settings());
  search.measured({}, 1);
  EXPECT_EQ(search.proposals(), 0u);
  size_t proposals = 0;
  while (const auto next = search.next()) {
    search.measured(*next, 1);
    EXPECT_EQ(search.proposals(), ++proposals);
  }
  search.next();
  search.next_untried();
  EXPECT_EQ(search.proposals(), proposals);
}

TEST(TuneExhaustive, EndsWithoutSettings) {
  const std::vector<Candidate> none;
  Search search(none);
  search.measured({}, 1);
  EXPECT_EQ(search.next_untried(), std::nullopt);
  EXPECT_EQ(search.coverage().tried, 1u);
  EXPECT_EQ(search.coverage().all, 1u);
}

}  // namespace
}  // namespace klap::tool
