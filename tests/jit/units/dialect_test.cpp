// Versions and targets: which code can stand together, and which devices run it.
#include "ptx/dialect.h"

#include <gtest/gtest.h>

namespace klap::ptx {
namespace {

std::string merge(const char* a, const char* b) {
  const auto both =
      merged(Dialect{{8, 0}, parse_target(a).value()}, Dialect{{8, 0}, parse_target(b).value()});
  return both ? to_string(both->target) : "none";
}

TEST(Dialect, ReadsVersionsAndTargets) {
  EXPECT_EQ((Version{9, 0}), parse_version("9.0"));
  EXPECT_EQ((Version{7, 8}), parse_version("7.8"));
  EXPECT_LT((Version{7, 8}), (Version{8, 0}));
  EXPECT_LT((Version{8, 9}), (Version{8, 10})) << "minor versions are numbers";
  for (const char* wrong : {"", "9", "9.", ".0", "9.0a", "nine"}) EXPECT_FALSE(parse_version(wrong)) << wrong;
  EXPECT_EQ((Target{90, 'a'}), parse_target("sm_90a"));
  EXPECT_EQ((Target{120, 'f'}), parse_target("sm_120f"));
  EXPECT_EQ((Target{75, '\0'}), parse_target("sm_75"));
  for (const char* wrong : {"", "sm_", "sm_a", "sm_90b", "sm_90af", "compute_90"}) {
    EXPECT_FALSE(parse_target(wrong)) << wrong;
  }
}

TEST(Dialect, PrintsWhatItReads) {
  for (const char* text : {"sm_75", "sm_90a", "sm_100f", "sm_121"})
    EXPECT_EQ(text, to_string(parse_target(text).value()));
  EXPECT_EQ("8.10", to_string(Version{8, 10}));
}

TEST(Dialect, MergesToTheHigherVersion) {
  const Target target{80, '\0'};
  EXPECT_EQ((Version{9, 0}), merged({{7, 8}, target}, {{9, 0}, target})->version);
  EXPECT_EQ((Version{9, 0}), merged({{9, 0}, target}, {{7, 8}, target})->version);
}

// Every pair both ways: what is merged does not depend on the order.
TEST(Dialect, MergesTargets) {
  constexpr const char* kExpected[][3] = {
      {"sm_75", "sm_90", "sm_90"},       {"sm_75", "sm_90a", "sm_90a"},    {"sm_90", "sm_90a", "sm_90a"},
      {"sm_100", "sm_90a", "none"},      {"sm_100a", "sm_90a", "none"},    {"sm_75", "sm_100f", "sm_100f"},
      {"sm_100", "sm_100f", "sm_100f"},  {"sm_103", "sm_100f", "sm_103f"}, {"sm_100f", "sm_100a", "sm_100a"},
      {"sm_100f", "sm_103a", "sm_103a"}, {"sm_100a", "sm_103", "none"},    {"sm_100a", "sm_103f", "none"},
      {"sm_100f", "sm_120", "none"},     {"sm_100f", "sm_120f", "none"},   {"sm_120f", "sm_121", "sm_121f"},
      {"sm_90a", "sm_90a", "sm_90a"},    {"sm_103f", "sm_100f", "sm_103f"}};
  for (const auto& [a, b, both] : kExpected) {
    EXPECT_EQ(both, merge(a, b)) << a << " and " << b;
    EXPECT_EQ(both, merge(b, a)) << b << " and " << a;
  }
}

// A merged target runs nowhere that one of the two would not.
TEST(Dialect, MergedTargetsRunOnlyWhereBothDo) {
  constexpr const char* kTargets[] = {"sm_75",  "sm_90",   "sm_90a",  "sm_100",  "sm_100f", "sm_100a",
                                      "sm_103", "sm_103f", "sm_103a", "sm_120f", "sm_121a"};
  constexpr uint32_t kDevices[] = {75, 80, 86, 89, 90, 100, 103, 110, 120, 121};
  for (const char* a : kTargets) {
    for (const char* b : kTargets) {
      const Target one = *parse_target(a), other = *parse_target(b);
      const auto both = merged(Dialect{{8, 0}, one}, Dialect{{8, 0}, other});
      for (const uint32_t sm : kDevices) {
        const bool should = runs_on(one, sm) && runs_on(other, sm);
        EXPECT_EQ(should, both && runs_on(both->target, sm)) << a << " and " << b << " on " << sm;
      }
    }
  }
}

TEST(Dialect, KnowsWhereCodeRuns) {
  EXPECT_TRUE(runs_on({80, '\0'}, 90));
  EXPECT_FALSE(runs_on({100, '\0'}, 90));
  EXPECT_TRUE(runs_on({90, 'a'}, 90));
  EXPECT_FALSE(runs_on({90, 'a'}, 100));
  EXPECT_TRUE(runs_on({100, 'f'}, 103));
  EXPECT_FALSE(runs_on({103, 'f'}, 100));
  EXPECT_FALSE(runs_on({100, 'f'}, 120));
}

TEST(Dialect, KnowsWhereThreadsRunInLockstep) {
  EXPECT_TRUE(runs_in_lockstep({61, '\0'}));
  EXPECT_FALSE(runs_in_lockstep({70, '\0'}));
}

TEST(Dialect, OfAModuleThatSaysSomethingElseIsAnError) {
  const Module m = parse(".version 8.0\n.target other_1\n.address_size 64\n", "odd.ptx");
  try {
    static_cast<void>(dialect_of(m));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Unsupported, error.code());
    EXPECT_STREQ("odd.ptx:2:1: PTX of version '8.0' for target 'other_1' is not known", error.what());
  }
}

}  // namespace
}  // namespace klap::ptx
