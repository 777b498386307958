// When the original of a parent is tried, and which of both runs then.
#include "runtime/parents/guard_choice.h"

#include <gtest/gtest.h>

namespace klap::runtime {
namespace {

using Next = GuardChoice::Next;

constexpr uint64_t kMostChildren = 2048;

// A program that launches again and again, with launches that take the times given here.
struct Launches {
  double variant_ms = 0, original_ms = 0;
  uint64_t children = 0;
  GuardChoice choice{};
  uint64_t originals = 0;

  Next launch(uint64_t most_children = kMostChildren) {
    const Next next = choice.next(most_children);
    if (next == Next::MeasuredVariant) choice.variant_took(variant_ms, children);
    if (next == Next::MeasuredOriginal) choice.original_took(original_ms);
    originals += next == Next::Original || next == Next::MeasuredOriginal ? 1 : 0;
    return next;
  }
  Next launch_times(uint64_t times) {
    Next last{};
    for (uint64_t i = 0; i < times; ++i) last = launch();
    return last;
  }
};

TEST(GuardChoice, TakesTheFasterOne) {
  Launches slower{.variant_ms = 2, .original_ms = 1, .children = 10};
  EXPECT_EQ(Next::Original, slower.launch_times(100));
  EXPECT_TRUE(slower.choice.is_original());
  Launches faster{.variant_ms = 1, .original_ms = 2, .children = 10};
  EXPECT_EQ(Next::Variant, faster.launch_times(100));
  EXPECT_FALSE(faster.choice.is_original());
  Launches hardly{.variant_ms = 1, .original_ms = 0.98, .children = 10};
  EXPECT_EQ(Next::Variant, hardly.launch_times(100)) << "no more than measurements differ";
}

TEST(GuardChoice, TriesNothingThatCouldLoseChildren) {
  Launches many{.variant_ms = 20, .original_ms = 1, .children = kMostChildren + 1};
  EXPECT_EQ(Next::Variant, many.launch_times(500));
  EXPECT_EQ(0u, many.originals);
  Launches unknown{.variant_ms = 20, .original_ms = 1, .children = 0};
  unknown.launch_times(500);
  EXPECT_EQ(0u, unknown.originals) << "nothing says how many there are";
  // Another stream begins to launch, so that each may launch less.
  Launches fewer{.variant_ms = 20, .original_ms = 1, .children = 1000};
  EXPECT_EQ(Next::Original, fewer.launch_times(100));
  EXPECT_EQ(Next::Variant, fewer.launch(999));
}

TEST(GuardChoice, DoesNotCountTheFirstTrial) {
  Launches launches{.variant_ms = 2, .original_ms = 50, .children = 10};
  while (launches.originals == 0) launches.launch();
  launches.original_ms = 1;
  EXPECT_EQ(Next::Original, launches.launch_times(20));
}

// The original may take 0.007 ms longer for each child. That must be 3 % of all time at most.
TEST(GuardChoice, TriesWhenATrialCostsLittle) {
  Launches launches{.variant_ms = 1, .original_ms = 8, .children = 1000};
  launches.launch_times(7000 / 30 - 1);
  EXPECT_EQ(0u, launches.originals);
  launches.launch_times(2);
  EXPECT_EQ(1u, launches.originals);
  launches.launch_times(10000);
  // As always, losses are at most 3 %, although both are measured again now and then.
  EXPECT_LE(static_cast<double>(launches.originals) * 7, 0.03 * 10300);
  EXPECT_GE(launches.originals, 2u);
}

TEST(GuardChoice, MeasuresAgain) {
  Launches launches{.variant_ms = 1, .original_ms = 2, .children = 10};
  launches.launch_times(500);
  EXPECT_FALSE(launches.choice.is_original());
  launches.original_ms = 0.5;
  EXPECT_EQ(Next::Original, launches.launch_times(1500));
  launches.variant_ms = 0.1;
  EXPECT_EQ(Next::Variant, launches.launch_times(1500));
}

TEST(GuardChoice, MeasuresOneAtATime) {
  GuardChoice choice{};
  choice.next(kMostChildren);
  choice.next(kMostChildren);
  EXPECT_EQ(Next::MeasuredVariant, choice.next(kMostChildren));
  EXPECT_EQ(Next::Variant, choice.next(kMostChildren));
  choice.not_measured();
  EXPECT_EQ(Next::MeasuredVariant, choice.next(kMostChildren));
}

}  // namespace
}  // namespace klap::runtime
