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
  uint64_t originals = 0, counts = 0;
  bool counts_apart = false;  // and not with each measurement

  Next launch(uint64_t most_children = kMostChildren) {
    const Next next = choice.next(most_children);
    counts += next == Next::CountedVariant ? 1 : 0;
    if (next == Next::CountedVariant || (next == Next::MeasuredVariant && !counts_apart))
      choice.counted(children);
    if (next == Next::MeasuredVariant) choice.variant_took(variant_ms);
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

TEST(GuardSamples, TheTimeInTheMiddleIsTypical) {
  Samples varies;
  EXPECT_EQ(0, varies.typical());
  varies.add(3);
  EXPECT_EQ(3, varies.typical());
  varies.add(1);
  EXPECT_EQ(1, varies.typical());
  varies.add(2);
  EXPECT_EQ(2, varies.typical());
  varies.add(9);
  EXPECT_EQ(2, varies.typical()) << "3 is forgotten";
  varies.add(9);
  EXPECT_EQ(9, varies.typical());
}

TEST(GuardChoice, TriesNothingThatCouldLoseChildren) {
  Launches many{.variant_ms = 20, .original_ms = 1, .children = kMostChildren + 1};
  EXPECT_EQ(Next::Variant, many.launch_times(500));
  EXPECT_EQ(0u, many.originals);
  Launches none{.variant_ms = 20, .original_ms = 1, .children = 0};
  EXPECT_EQ(Next::Original, none.launch_times(100));
  // Another stream begins to launch, so that each may launch less.
  Launches fewer{.variant_ms = 20, .original_ms = 1, .children = 1000};
  EXPECT_EQ(Next::Original, fewer.launch_times(100));
  EXPECT_EQ(Next::Variant, fewer.launch(999));
}

// Where a measured launch cannot count, another one does before the first trial.
TEST(GuardChoice, CountsBeforeItTries) {
  Launches slower{.variant_ms = 2, .original_ms = 1, .children = 10, .counts_apart = true};
  while (slower.counts == 0) EXPECT_NE(Next::MeasuredOriginal, slower.launch());
  EXPECT_EQ(Next::Original, slower.launch_times(100));
  EXPECT_EQ(1u, slower.counts);
  Launches many{.variant_ms = 20, .original_ms = 1, .children = kMostChildren + 1, .counts_apart = true};
  many.launch_times(500);
  EXPECT_EQ(1u, many.counts);
  EXPECT_EQ(0u, many.originals);
}

// If the launch was not counted after all, the next one is.
TEST(GuardChoice, CountsAgain) {
  GuardChoice choice;
  int counts = 0;
  for (int i = 0; i < 100; ++i) {
    const Next next = choice.next(kMostChildren);
    if (next == Next::MeasuredVariant) choice.variant_took(1);
    if (next == Next::CountedVariant) choice.not_measured(), ++counts;
    ASSERT_NE(Next::MeasuredOriginal, next);
  }
  EXPECT_GT(counts, 50);
}

TEST(GuardChoice, DoesNotCountTheFirstTrial) {
  Launches launches{.variant_ms = 2, .original_ms = 50, .children = 10};
  while (launches.originals == 0) launches.launch();
  launches.original_ms = 1;
  EXPECT_EQ(Next::Original, launches.launch_times(20));
}

// The original may take 0.011 ms longer for each child, and to measure takes 0.01 ms. That must be 3 % of all
// time at most.
TEST(GuardChoice, TriesWhenATrialCostsLittle) {
  Launches launches{.variant_ms = 1, .original_ms = 8, .children = 1000};
  launches.launch_times(11000 / 30 - 1);
  EXPECT_EQ(0u, launches.originals);
  launches.launch_times(3);
  EXPECT_EQ(1u, launches.originals);
  launches.launch_times(10000);
  // As always, losses are at most 3 %, although both are measured again now and then.
  EXPECT_LE(static_cast<double>(launches.originals) * 7, 0.03 * 10300);
  EXPECT_GE(launches.originals, 2u);
}

// A chain of tail launches is what costs most for each launch, as measured. The first trial counts, too, but
// for what setting up takes.
TEST(GuardChoice, LosesLittleByTryingAChain) {
  Launches launches{.variant_ms = 1.17, .original_ms = 10.3, .children = 999};
  double lost_ms = 0;
  for (int i = 0; i < 5000; ++i) {
    const double set_up_ms = launches.originals == 0 ? 5 : 0;
    launches.original_ms = 10.3 + set_up_ms;
    if (launches.launch() != Next::MeasuredOriginal) continue;
    lost_ms += launches.original_ms - launches.variant_ms - set_up_ms;
    EXPECT_LE(lost_ms, 0.03 * i * launches.variant_ms) << launches.originals;
  }
  EXPECT_GT(launches.originals, 2u);
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

// To measure costs more than such launches take, so it is done seldom, and yet often enough.
TEST(GuardChoice, MeasuresShortLaunchesSeldom) {
  Launches launches{.variant_ms = 0.005, .original_ms = 0.004};
  const auto measured = [&launches](int times) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      const Next next = launches.launch();
      count += next == Next::MeasuredVariant || next == Next::MeasuredOriginal ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(1, measured(100));
  EXPECT_LE(measured(900), 14) << "3 % of 5 ms";
  EXPECT_TRUE(launches.choice.is_original());
  EXPECT_LE(launches.choice.lost_ms(), 0.15);
}

// A few times of short kernels may be wrong. So a new choice is looked at again soon.
TEST(GuardChoice, MeasuresSoonAgainAfterTheFirstChoice) {
  Launches launches{.variant_ms = 1, .original_ms = 2, .children = 10};
  while (!launches.choice.is_decided()) launches.launch();
  launches.original_ms = 0.5;
  launches.launch_times(150);
  EXPECT_TRUE(launches.choice.is_original());
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

// Processes one after another that launch so often each, with launches that take the times given here. The
// first launch of a process takes as much longer as is said.
struct Runs {
  double variant_ms = 0, original_ms = 0;
  double variant_first_ms = 0, original_first_ms = 0;
  uint64_t children = 10;
  GuardTimes known{};
  int64_t now = 1000;
  uint64_t originals = 0;  // of the last process
  bool is_told = false;    // the last process
  double lost_ms = 0;      // by all

  void run(uint64_t launches, uint64_t most_children = kMostChildren) {
    GuardChoice choice(known, now);
    bool is_first_variant = true, is_first_original = true;
    originals = 0;
    is_told = choice.is_told();
    for (uint64_t i = 0; i < launches; ++i) {
      const Next next = choice.next(most_children);
      const double variant = variant_ms + (is_first_variant ? variant_first_ms : 0);
      const double original = original_ms + (is_first_original ? original_first_ms : 0);
      const bool is_original =
          next == Next::Original || next == Next::MeasuredOriginal || next == Next::CheckedOriginal;
      if (next == Next::MeasuredVariant) choice.counted(children);
      if (next == Next::MeasuredVariant) choice.variant_took(variant);
      if (next == Next::MeasuredOriginal || next == Next::CheckedOriginal) choice.original_took(original);
      (is_original ? is_first_original : is_first_variant) = false;
      originals += is_original ? 1 : 0;
    }
    if (const auto found = choice.found()) known.add(*found, choice.replaces());
    lost_ms += choice.lost_ms();
  }
  // Runs until a process runs the original; says how many processes that took, at most so many.
  int runs_until_original(uint64_t launches, int most) {
    for (int i = 1; i <= most; ++i) {
      run(launches);
      if (originals != 0) return i;
    }
    return 0;
  }
};

// The original may cost 0.011 ms for each child, so 0.11 ms, which is 3 % of 3.67 ms.
TEST(GuardChoiceOverRuns, TriesALaunchOfEachProcessInALaterOne) {
  Runs slower{.variant_ms = 1, .original_ms = 0.5};
  EXPECT_EQ(4, slower.runs_until_original(1, 100)) << "three are over, and this one counts, too";
  slower.run(1);
  EXPECT_EQ(1u, slower.originals);
  EXPECT_TRUE(slower.is_told) << "from the first launch on";
  Runs faster{.variant_ms = 1, .original_ms = 3};
  EXPECT_EQ(4, faster.runs_until_original(1, 100));
  for (int i = 0; i < 100; ++i) {
    faster.run(1);
    EXPECT_EQ(0u, faster.originals);
  }
}

TEST(GuardChoiceOverRuns, CountsSettingUpWhereEachProcessPaysIt) {
  Runs once{.variant_ms = 1, .original_ms = 0.5, .original_first_ms = 5};
  once.runs_until_original(1, 100);
  once.run(1);
  EXPECT_EQ(0u, once.originals) << "5.5 ms in each process";
  EXPECT_TRUE(once.is_told);
  // In 100 launches, 50 ms are saved.
  Runs often{.variant_ms = 1, .original_ms = 0.5, .original_first_ms = 5};
  often.run(100);
  EXPECT_GT(often.originals, 80u);
  often.run(100);
  EXPECT_EQ(100u, often.originals);
  Runs few{.variant_ms = 1, .original_ms = 0.5, .original_first_ms = 5};
  for (int i = 0; i < 5; ++i) few.run(9);
  EXPECT_EQ(0u, few.originals) << "9.5 ms rather than 9";
}

// As a program does that launches 15 times, 0.4 ms each with 72 children: a trial may cost 0.8 ms,
// and three measurements 0.03 ms.
TEST(GuardChoiceOverRuns, AddsUpTheTimeOfProcesses) {
  Runs runs{.variant_ms = 0.4, .original_ms = 0.27, .children = 72};
  EXPECT_EQ(5, runs.runs_until_original(15, 100));
  runs.run(15);
  EXPECT_EQ(15u, runs.originals);
}

TEST(GuardChoiceOverRuns, LosesLittle) {
  for (const uint64_t launches : {1, 2, 3, 15, 1000}) {
    Runs runs{.variant_ms = 1, .original_ms = 4, .children = 100};
    for (int i = 0; i < 500; ++i) {
      runs.run(launches);
      runs.now += 10'000;  // so the day is over again and again
    }
    const double all = 500 * static_cast<double>(launches);
    EXPECT_LE(runs.lost_ms, 0.03 * all + 4) << launches << " launches, and one first trial";
    EXPECT_GT(runs.lost_ms, 0) << launches;
  }
}

TEST(GuardChoiceOverRuns, TriesNothingThatCouldLoseChildren) {
  Runs many{.variant_ms = 20, .original_ms = 1, .children = kMostChildren + 1};
  EXPECT_EQ(0, many.runs_until_original(1, 200));
  Runs none{.variant_ms = 20, .original_ms = 1, .children = 0};
  EXPECT_NE(0, none.runs_until_original(1, 200));
  Runs fewer{.variant_ms = 20, .original_ms = 1, .children = 1000};
  EXPECT_NE(0, fewer.runs_until_original(1, 200));
  fewer.run(1, 999);
  EXPECT_EQ(0u, fewer.originals) << "less may be pending in this process";
}

TEST(GuardChoiceOverRuns, GiveUpTimesThatAreNoLongerTrue) {
  for (const uint64_t launches : {1, 20}) {
    Runs runs{.variant_ms = 1, .original_ms = 0.5};
    for (int i = 0; i < 10; ++i) runs.run(launches);
    EXPECT_EQ(launches, runs.originals);
    runs.variant_ms = 0.2, runs.original_ms = 1.5;  // another clock, and other data
    for (int i = 0; i < 10; ++i) runs.run(launches);
    EXPECT_EQ(0u, runs.originals) << launches;
    EXPECT_LT(runs.known.variant.first.typical(), 0.3) << "new times outweigh old ones";
  }
}

TEST(GuardChoiceOverRuns, CompareAgainAfterADay) {
  Runs runs{.variant_ms = 1, .original_ms = 2};
  for (int i = 0; i < 100; ++i) runs.run(1);
  EXPECT_TRUE(runs.is_told);
  runs.original_ms = 0.5;  // of which the process that runs the variant sees nothing
  runs.run(1);
  EXPECT_EQ(0u, runs.originals);
  runs.now += 25 * 3600;
  EXPECT_NE(0, runs.runs_until_original(1, 100));
  runs.run(1);
  EXPECT_EQ(1u, runs.originals);
  EXPECT_TRUE(runs.is_told);
}

// What is known of processes that launch once says little about one that launches again and again.
TEST(GuardChoiceOverRuns, MeasureManyLaunchesForThemselves) {
  Runs runs{.variant_ms = 1, .original_ms = 0.5, .original_first_ms = 5};
  for (int i = 0; i < 50; ++i) runs.run(1);
  EXPECT_EQ(0u, runs.originals);
  runs.run(2000);
  EXPECT_GT(runs.originals, 1500u);
}

TEST(GuardChoiceOverRuns, KeepNothingWhereNothingWasMeasured) {
  GuardChoice choice;
  for (int i = 0; i < 2; ++i) choice.next(kMostChildren);
  EXPECT_FALSE(choice.found());
}

}  // namespace
}  // namespace klap::runtime
