// When children run in blocks, and what a look at their sizes reads.
#include "runtime/forms/form_choice.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/forms/child_forms.h"

namespace klap::runtime {
namespace {

using Form = FormChoice::Next;

constexpr SizesSeen kSmall{5'000'000, 32'000'000}, kLarge{31'000'000, 32'000'000}, kOnTheLimit{780, 1000},
    kNothing{0, 0}, kFewSmall{50, 320}, kFewLarge{310, 320};

// LookedAtLaunches whose looks are read at the next one.
struct LookedAtLaunches {
  FormChoice choice{};
  uint64_t looks = 0, changes = 0;

  Form launch(const SizesSeen& seen) {
    const Form next = choice.next();
    if (next != Form::LookedAt) return next;
    ++looks;
    changes += choice.looked(seen) ? 1 : 0;
    return next;
  }
  // How many of them ran in blocks.
  uint64_t launch_times(uint64_t times, const SizesSeen& seen) {
    uint64_t in_blocks = 0;
    for (uint64_t i = 0; i < times; ++i) in_blocks += launch(seen) == Form::Blocks ? 1 : 0;
    return in_blocks;
  }
};

TEST(FormChoice, LooksAtTheFirstLaunch) {
  LookedAtLaunches launches;
  EXPECT_EQ(Form::LookedAt, launches.launch(kLarge));
  EXPECT_EQ(Form::Blocks, launches.launch(kLarge));
  EXPECT_EQ(1, launches.changes);
}

TEST(FormChoice, TakesBlocksWhereTheirLanesAreUsed) {
  EXPECT_EQ(90, LookedAtLaunches().launch_times(100, kLarge));
  EXPECT_EQ(0, LookedAtLaunches().launch_times(100, kSmall));
  EXPECT_EQ(0, LookedAtLaunches().launch_times(100, kNothing));
}

TEST(FormChoice, FollowsWithinTenLaunches) {
  LookedAtLaunches launches;
  launches.launch_times(25, kSmall);
  EXPECT_FALSE(launches.choice.takes_blocks());
  launches.launch_times(10, kLarge);
  EXPECT_TRUE(launches.choice.takes_blocks());
  launches.launch_times(10, kSmall);
  EXPECT_FALSE(launches.choice.takes_blocks());
  EXPECT_EQ(2, launches.changes);
}

TEST(FormChoice, ChangesNothingNearTheLimit) {
  LookedAtLaunches launches;
  launches.launch_times(100, kOnTheLimit);
  EXPECT_FALSE(launches.choice.takes_blocks());
  launches.launch_times(100, kLarge);
  launches.launch_times(100, kOnTheLimit);
  EXPECT_TRUE(launches.choice.takes_blocks());
}

TEST(FormChoice, LooksSeldomWhereThereIsLittleToGain) {
  LookedAtLaunches many, few;
  many.launch_times(1000, kLarge);
  few.launch_times(1000, kFewLarge);
  EXPECT_EQ(100, many.looks);
  EXPECT_EQ(14, few.looks);
  few.launch_times(1000, kFewSmall);
  EXPECT_FALSE(few.choice.takes_blocks());
}

// A look that finds nothing, or that cannot be made, leaves the choice as it is.
TEST(FormChoice, KeepsItsChoiceWithoutChildren) {
  LookedAtLaunches launches;
  launches.launch_times(30, kLarge);
  launches.launch_times(100, kNothing);
  EXPECT_TRUE(launches.choice.takes_blocks());
  for (int i = 0; i < 100; ++i) launches.choice.next();
  EXPECT_TRUE(launches.choice.takes_blocks());
}

// The first bytes of a queue, of which the sizes of children are given.
class MadeUpQueue {
 public:
  static constexpr uint64_t kHead = 0x7000'0000;
  static constexpr size_t kPrefix = 2 * KLAP_HEAD_BYTES;

  explicit MadeUpQueue(const std::vector<uint64_t>& sizes, unsigned big = 0, size_t bytes = 1024)
      : copy_(bytes) {
    uint64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t place = kPrefix + i * sizeof begin;
      if (place + sizeof begin <= bytes) std::memcpy(copy_.data() + place, &begin, sizeof begin);
      begin += sizes[i];
    }
    queue_.packed = begin << KLAP_INDEX_BITS | sizes.size();
    queue_.big = big;
    queue_.capacity = 1 << 20;
    point_to(kHead + kPrefix);
  }
  void point_to(uint64_t prefix) {
    queue_.prefix = std::bit_cast<unsigned long long*>(prefix);
    std::memcpy(copy_.data(), &queue_, sizeof queue_);
  }
  [[nodiscard]] std::optional<SizesSeen> seen(uint32_t block_threads) const {
    return sizes_in(copy_, kHead, block_threads);
  }

 private:
  KlapQueue queue_{};
  std::vector<unsigned char> copy_;
};

TEST(SizesIn, CountThreadsAndTheLanesOfTheirBlocks) {
  const auto seen = MadeUpQueue({64, 1, 65, 0, 10}).seen(64);
  ASSERT_TRUE(seen);
  EXPECT_EQ(140, seen->threads);
  EXPECT_EQ(64 + 64 + 128 + 64, seen->lanes);
}

TEST(SizesIn, OfTheFirstChildrenStandForAll) {
  const auto seen = MadeUpQueue(std::vector<uint64_t>(100'000, 48)).seen(64);
  ASSERT_TRUE(seen);
  EXPECT_EQ(4'800'000, seen->threads);
  EXPECT_EQ(6'400'000, seen->lanes);
}

TEST(SizesIn, AreNothingWithoutChildren) {
  const auto seen = MadeUpQueue({}).seen(64);
  ASSERT_TRUE(seen);
  EXPECT_EQ(0, seen->threads);
  EXPECT_EQ(0, seen->lanes);
}

TEST(SizesIn, OfBigChildrenFillTheirBlocks) {
  const auto seen = MadeUpQueue({1}, 3).seen(64);
  ASSERT_TRUE(seen);
  EXPECT_GT(seen->lanes_used(), 0.99);
}

TEST(SizesIn, AreUnknownWhereThePrefixIsElsewhere) {
  for (const uint64_t place : {uint64_t{0}, MadeUpQueue::kHead - 8, MadeUpQueue::kHead + 1024,
                               MadeUpQueue::kHead + MadeUpQueue::kPrefix + 1}) {
    MadeUpQueue queue({64, 64});
    queue.point_to(place);
    EXPECT_FALSE(queue.seen(64)) << place;
  }
  EXPECT_FALSE(sizes_in({}, MadeUpQueue::kHead, 64));
}

}  // namespace
}  // namespace klap::runtime
