// With how many blocks a child in a grid-stride loop is recorded: the device code itself, as C++ of the host,
// where a thread keeps eight rounds, in blocks of which there may be sixteen.
#include <gtest/gtest.h>

#include <cstdint>

#include "device_code.h"

#define KLAP_FLAT 64u
#define KLAP_BOUND long long
#define KLAP_BOUND_COMPARED long long
#define KLAP_SPLIT_ITERATIONS
#define KLAP_MOST_BLOCKS 16u
#define KLAP_SPANS KLAP_SPAN(0, 0, 4, 4, 2) KLAP_SPAN(1, 0, 4, 4, 0)
#include "ptx-patterns/templates/aggregate/split_iterations.h"

namespace klap::test {
namespace {

unsigned int blocks(long long iterations, unsigned int launched = 1, unsigned long long in = 1 << 24) {
  const unsigned long long pointers[] = {1 << 20, in, 0};
  return blocks_for_iterations(launched, iterations, pointers);
}

TEST(RoundsOfAThread, AreEightWhereThatMakesFourTimesAsManyBlocks) {
  constexpr long long kEight = 8LL * 64;
  EXPECT_EQ(1u, blocks(3 * kEight));
  EXPECT_EQ(4u, blocks(3 * kEight + 1));
  EXPECT_EQ(4u, blocks(4 * kEight));
  EXPECT_EQ(5u, blocks(4 * kEight + 1));
  EXPECT_EQ(2u, blocks(7 * kEight, 2));
  EXPECT_EQ(8u, blocks(7 * kEight + 1, 2));
  EXPECT_EQ(1u, blocks(4 * kEight, 1, 1 << 20 | 4)) << "what is read is written";
}

TEST(RoundsOfAThread, AreMoreInAsManyBlocksAsThereMayBe) {
  constexpr long long kEight = 8LL * 64;
  EXPECT_EQ(16u, blocks(16 * kEight));
  EXPECT_EQ(16u, blocks(1000 * kEight));
  EXPECT_EQ(16u, blocks(1000 * kEight, 15));
  EXPECT_EQ(16u, blocks(1000 * kEight, 16));
  EXPECT_EQ(17u, blocks(1000 * kEight, 17)) << "as launched";
}

}  // namespace
}  // namespace klap::test
