// With how many blocks a child in a grid-stride loop is recorded: the device code itself, as C++ of the host,
// for bounds that no run could go through. Each round has a thread.
#include <gtest/gtest.h>

#include <cstdint>

#include "device_code.h"

#define KLAP_FLAT 64u
#define KLAP_BOUND long long
#define KLAP_BOUND_COMPARED long long
#define KLAP_SPLIT_ITERATIONS
#define KLAP_SPLIT_ALL_ITERATIONS
// Two arrays that are written, one that is read from one behind and one before, and a counter.
#define KLAP_SPANS KLAP_SPAN(0, 0, 4, 4, 2) KLAP_SPAN(1, -4, 4, 12, 0) KLAP_SPAN(2, 8, 0, 4, 1)
#include "ptx-patterns/templates/aggregate/split_iterations.h"

namespace klap::test {
namespace {

constexpr unsigned long long kOut = 1 << 20, kIn = 1 << 24, kCounter = 1 << 28;

unsigned int blocks(long long iterations, unsigned int launched = 2, unsigned long long in = kIn,
                    unsigned long long counter = kCounter) {
  const unsigned long long pointers[] = {kOut, in, counter, 0};
  return blocks_for_iterations(launched, iterations, pointers);
}

TEST(Rounds, AThreadForEach) {
  EXPECT_EQ(3u, blocks(129));
  EXPECT_EQ(3u, blocks(192));
  EXPECT_EQ(4u, blocks(193));
  EXPECT_EQ(15625u, blocks(1000000));
}

TEST(Rounds, NeverFewerThanLaunched) {
  for (const long long iterations : {-5LL, 0LL, 1LL, 64LL, 127LL, 128LL, -(1LL << 40)})
    EXPECT_EQ(2u, blocks(iterations));
  EXPECT_EQ(100u, blocks(6400, 100));
  EXPECT_EQ(101u, blocks(6401, 100));
}

TEST(Rounds, OnlyWhereNoIndexWraps) {
  constexpr unsigned long long kFar = 1ull << 50;
  EXPECT_EQ(1u << 20, blocks(1LL << 26, 2, kFar, 2 * kFar));
  EXPECT_EQ(2u, blocks((1LL << 26) + 1, 2, kFar, 2 * kFar));
  EXPECT_EQ(2u, blocks((1LL << 32) + 1000, 2, kFar, 2 * kFar));
  EXPECT_EQ(2u, blocks(INT64_MAX, 2, kFar, 2 * kFar));
}

TEST(Rounds, WhereArraysAreApart) {
  constexpr long long kRounds = 1000;
  constexpr unsigned long long kBytes = 4 * kRounds;
  // What is read begins 4 bytes before the pointer, and ends 8 behind the last round's.
  EXPECT_EQ(16u, blocks(kRounds, 2, kOut + kBytes + 4)) << "right behind";
  EXPECT_EQ(2u, blocks(kRounds, 2, kOut + kBytes + 3));
  EXPECT_EQ(16u, blocks(kRounds, 2, kOut - kBytes - 4)) << "right ahead";
  EXPECT_EQ(2u, blocks(kRounds, 2, kOut - kBytes - 3));
  EXPECT_EQ(2u, blocks(kRounds, 2, kOut)) << "a round reads its neighbours' cells";
  // The counter, 8 bytes behind its pointer.
  EXPECT_EQ(16u, blocks(kRounds, 2, kIn, kOut + kBytes - 8));
  EXPECT_EQ(2u, blocks(kRounds, 2, kIn, kOut + kBytes - 12));
  EXPECT_EQ(16u, blocks(kRounds, 2, kIn, kOut - 12));
  EXPECT_EQ(2u, blocks(kRounds, 2, kIn, kOut - 8));
  EXPECT_EQ(2u, blocks(kRounds, 2, kIn, kIn)) << "what is counted is read";
}

}  // namespace
}  // namespace klap::test
