// When a parent is its own consumer, by how many children its last launches had.
#include <gtest/gtest.h>

#include "runtime/forms/few_children.h"

namespace klap::runtime {
namespace {

using FewNext = FewChoice::Next;

// Launches whose looks are read at the next one.
struct CountedLaunches {
  FewChoice choice{};
  uint64_t looks = 0;

  // How many of them ran in one kernel.
  uint64_t launch_times(uint64_t times, bool few) {
    uint64_t fused = 0;
    for (uint64_t i = 0; i < times; ++i) {
      const FewNext next = choice.next();
      fused += next == FewNext::Fused ? 1 : 0;
      if (next != FewNext::LookedAt) continue;
      ++looks;
      choice.looked(few);
    }
    return fused;
  }
};

TEST(FewChoice, LooksAtNoFirstLaunches) {
  CountedLaunches launches;
  EXPECT_EQ(0, launches.launch_times(FewChoice::kLaunchesBeforeLooks, true));
  EXPECT_EQ(0, launches.looks);
}

TEST(FewChoice, TakesOneKernelAfterSeveralLooksInARow) {
  CountedLaunches launches;
  EXPECT_EQ(0, launches.launch_times(FewChoice::kLaunchesBeforeLooks + FewChoice::kLooks, true));
  EXPECT_EQ(FewChoice::kLooks, launches.looks);
  EXPECT_TRUE(launches.choice.takes_fused());
  EXPECT_EQ(151, launches.launch_times(161, true));
  EXPECT_EQ(FewChoice::kLooks + 10, launches.looks);
}

TEST(FewChoice, TakesTwoAgainAtTheFirstLookThatFindsMany) {
  CountedLaunches launches;
  launches.launch_times(100, true);
  EXPECT_GE(FewChoice::kLaunchesBetweenLooks, launches.launch_times(100, false));
  EXPECT_FALSE(launches.choice.takes_fused());
  EXPECT_EQ(0, launches.launch_times(100, false));
}

TEST(FewChoice, LooksMoreAndMoreRarelyWhereThereAreMany) {
  CountedLaunches launches;
  EXPECT_EQ(0, launches.launch_times(10'000, false));
  EXPECT_GT(20, launches.looks);
  EXPECT_EQ(0, launches.launch_times(1, true));
  EXPECT_LT(0, launches.launch_times(2000, true));
}

TEST(FewChoice, NeedsLooksInARow) {
  FewChoice choice;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(choice.looked(i % FewChoice::kLooks != 0));
}

}  // namespace
}  // namespace klap::runtime
