// How many blocks a multiprocessor must have registers for: where something is asked for, and for how many.
#include "transform/promotion/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "golden.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "tests/settings/given.h"

namespace klap::transform {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Residency, FillsTheMultiprocessorWithChildrenOfFewRegisters) {
  EXPECT_EQ(8u, min_consumer_blocks(16, 256, 90));
  EXPECT_EQ(2u, min_consumer_blocks(1, 1024, 80));
  EXPECT_EQ(6u, min_consumer_blocks(16, 256, 86)) << "which holds 1,536 threads";
  EXPECT_EQ(4u, min_consumer_blocks(16, 256, 75));
  EXPECT_EQ(16u, min_consumer_blocks(1, 64, 90)) << "more blocks not every device holds";
}

TEST(Residency, IsTheAssemblersToDecideForChildrenThatHoldMore) {
  EXPECT_EQ(0u, min_consumer_blocks(17, 256, 90));
  EXPECT_EQ(6u, min_consumer_blocks(26, 256, 86));
  EXPECT_EQ(0u, min_consumer_blocks(27, 256, 86));
  EXPECT_EQ(0u, min_consumer_blocks(1, 1024, 86)) << "a second block has no place";
  EXPECT_EQ(0u, min_consumer_blocks(~0u, 256, 90));
}

TEST(Residency, LeavesWorklistConsumersFortyEightRegisters) {
  EXPECT_EQ(10u, min_worklist_blocks(48, 128));
  EXPECT_EQ(32u, min_worklist_blocks(1, 32));
  EXPECT_EQ(0u, min_worklist_blocks(49, 128));
  EXPECT_EQ(0u, min_worklist_blocks(1, 1024));
}

// As with CUB's sort and its sums, on a device of compute capability 9.0.
TEST(Residency, LetsBlocksOfTheExecutorShareAMultiprocessor) {
  constexpr uint64_t kFewBytes = 300, kManyBytes = 35000;
  EXPECT_EQ(2u, min_executor_blocks(104, 384, kManyBytes, true, 90)) << "a quarter may be in memory";
  EXPECT_EQ(0u, min_executor_blocks(120, 384, kManyBytes, true, 90)) << "but not a third";
  EXPECT_EQ(3u, min_executor_blocks(67, 256, kFewBytes, false, 90));
  EXPECT_EQ(18u, min_executor_blocks(100, 1, kFewBytes, false, 90)) << "a warp is the smallest block";
}

TEST(Residency, LetsBlocksOfTheExecutorHoldNoMoreSharedMemoryThanThereIs) {
  constexpr uint64_t kBytes = 40 << 10;
  EXPECT_EQ(5u, min_executor_blocks(24, 128, kBytes, true, 90));
  EXPECT_EQ(4u, min_executor_blocks(24, 128, kBytes, true, 80));
  EXPECT_EQ(2u, min_executor_blocks(24, 128, kBytes, true, 86));
  EXPECT_EQ(0u, min_executor_blocks(24, 128, kBytes, true, 75));
}

TEST(Residency, GivesExecutedChildrenOfFewRegistersMoreThreads) {
  EXPECT_EQ(12u, min_executor_blocks(12, 128, 0, false, 90));
  EXPECT_EQ(10u, min_executor_blocks(12, 128, 0, true, 90)) << "copies hold more";
}

TEST(Residency, LeavesExecutedChildrenOfMoreRegistersSixtyFour) {
  EXPECT_EQ(5u, min_executor_blocks(24, 256, 0, false, 90));
  EXPECT_EQ(4u, min_executor_blocks(25, 256, 0, false, 90));
  EXPECT_EQ(4u, min_executor_blocks(48, 256, 0, false, 90));
  EXPECT_EQ(0u, min_executor_blocks(32, 1024, 0, false, 90));
}

TEST(Residency, HoldsAsManyLinksAsTheirRegistersAllow) {
  EXPECT_EQ(4u, min_chain_blocks(28, 512, 90));
  EXPECT_EQ(3u, min_chain_blocks(29, 512, 90));
  EXPECT_EQ(3u, min_chain_blocks(28, 512, 86));
  EXPECT_EQ(16u, min_chain_blocks(1, 32, 90));
  EXPECT_EQ(0u, min_chain_blocks(80, 512, 90));
}

std::string rewritten(const std::string& golden, uint32_t sm = 90) {
  const std::string ptx = test::read_golden(KLAP_GOLDEN_DIR "/" + golden + ".golden").section("ptx");
  const jit::Program program = jit::program_from_ptx(ptx, golden);
  jit::Request request;
  request.sm = sm;
  // Children in order are held by what they wait with.
  request.setting = test::given({{"granularity", "grid"}, {"launcher", "host"}, {"ordering", "relaxed"}});
  return jit::rewrite_ptx(program.units[0], request, nullptr);
}

TEST(Residency, IsAskedForWhereNothingElseIsHeld) {
  EXPECT_THAT(rewritten("rewritten-child-unites"), HasSubstr(".minnctapersm 8"));
  EXPECT_THAT(rewritten("rewritten-child-barrier"), HasSubstr(".minnctapersm 8"));
}

TEST(Residency, IsThatOfTheDeviceAndNotOfTheTarget) {
  EXPECT_THAT(rewritten("rewritten-child-unites", 86), HasSubstr(".minnctapersm 6"));
}

TEST(Residency, IsNotWhereItWouldPutRegistersIntoMemory) {
  for (const char* const golden : {"rewritten-3d", "rewritten-block-bounded", "rewritten-device-function",
                                   "rewritten-struct-argument", "rewritten-straight-loop"}) {
    EXPECT_THAT(rewritten(golden), Not(HasSubstr(".minnctapersm"))) << golden;
  }
}

}  // namespace
}  // namespace klap::transform
