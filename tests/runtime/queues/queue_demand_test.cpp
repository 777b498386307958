// How many blocks of a parent fit the queues of a given size.
#include "runtime/queues/queue_demand.h"

#include <gtest/gtest.h>

namespace klap::runtime {
namespace {

TEST(QueueDemand, IsTheMostBlocksThatFit) {
  jit::Variant variant;
  variant.queues.resize(2);
  variant.queues[0].record_bytes = 24;
  variant.queues[1].record_bytes = 80;
  for (const uint32_t group_blocks : {0u, 1u, 3u}) {
    variant.group_blocks = group_blocks;
    const QueueDemand demand{96, &variant};
    for (uint64_t bytes = 0; bytes < 200'000; bytes += 1111) {
      const uint64_t most = demand.most_blocks(1000, bytes);
      EXPECT_TRUE(most == 0 || demand.fits(most, bytes));
      EXPECT_TRUE(most == 1000 || !demand.fits(most + 1, bytes));
    }
    EXPECT_EQ(1000u, demand.most_blocks(1000, 1 << 30));
  }
}

}  // namespace
}  // namespace klap::runtime
