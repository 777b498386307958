// The queues of redirected launches: the memory that they take, when it grows or goes to another stream, what
// is cleared, and what is left because no queue could hold its records.
#include "redirected.h"

namespace klap::runtime {
namespace {

class RedirectQueuesTest : public RedirectTest {};

TEST_F(RedirectQueuesTest, QueueHeaderDescribesItsArrays) {
  expect_redirected(launch_of(parent_));
  const auto copies = calls("cuMemcpyHtoDAsync_v2");
  const auto allocations = calls("cuMemAlloc_v2");
  ASSERT_EQ(1u, copies.size());
  ASSERT_EQ(1u, allocations.size());
  const uint64_t block = std::stoull(allocations[0]["address"], nullptr, 16);
  const uint64_t block_end = block + std::stoull(allocations[0]["bytes"]);
  const KlapQueue queue = decoded(copies[0]["data"]);
  EXPECT_EQ(0u, queue.packed);
  EXPECT_EQ(0u, queue.big);
  EXPECT_EQ(0u, queue.exited);
  EXPECT_EQ(4096u, queue.capacity);
  EXPECT_EQ(KLAP_HEAD_BYTES, queue.other);
  EXPECT_EQ(nullptr, queue.report);
  const auto prefix = reinterpret_cast<uint64_t>(queue.prefix);
  const auto records = reinterpret_cast<uint64_t>(queue.records);
  EXPECT_GE(prefix, block + sizeof(KlapQueue));
  EXPECT_GE(records, prefix + 4096 * sizeof(unsigned long long));
  EXPECT_LE(records + uint64_t{4096} * 24, block_end);
  EXPECT_GE(prefix, block + KLAP_ONCE_OFFSET + KLAP_ONCE_BYTES) << "room for what is passed once";
  EXPECT_EQ(0u, records % 16);
}

TEST_F(RedirectQueuesTest, LaunchesThatNoQueueCanHoldAreLeft) {
  Launch launch = launch_of(parent_);
  launch.grid[0] = KLAP_MAX_RECORDS / 64 + 1;
  expect_left(launch, "too many threads");
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 0xffffffffu;
  expect_left(launch, "too many threads");
  launch.grid[0] = 0;
  expect_left(launch, "empty grid");
  launch = launch_of(other_);
  launch.grid[0] = KLAP_MAX_RECORDS / 64;
  expect_left(launch, "queue over pool_bytes", "other");
  launch = launch_of(parent_);  // the same number of smaller records fits
  launch.grid[0] = KLAP_MAX_RECORDS / 64;
  expect_redirected(launch);
}

// Groups share a queue that does not grow with the grid: there must be a record for each, beside its head.
TEST_F(RedirectQueuesTest, GroupsThatNoQueueHasPartsForAreLeft) {
  const std::map<std::string, uint64_t> limits{{"looping_groups", uint64_t{64} << 10}};
  CUlibrary library = nullptr;
  load_library(limits, library);
  Launch launch = launch_of(looping_groups_);
  launch.block[0] = 1;
  launch.grid[0] = 2 * 100;
  expect_redirected(launch);
  launch.grid[0] = 2 * 115;  // 512 bytes for the head of each, 56 for a record and its items
  expect_left(launch, "queue over pool_bytes", "looping_groups");
  launch.grid[0] = 2 * 100;
  expect_redirected(launch);
  launch.grid[0] = KLAP_MAX_RECORDS + 1;
  expect_left(launch, "too many threads", "looping_groups");
  Registry::instance().remove_library(library);
  driver()->library_unload(library);
}

// All heads are empty when they are first used; afterwards each parent leaves them so.
TEST_F(RedirectQueuesTest, HeadsOfGroupsAreMadeOnce) {
  expect_redirected(launch_of(looping_groups_));
  EXPECT_EQ(2u, calls("cuMemAlloc_v2").size());
  EXPECT_EQ(2u, calls("cuMemsetD8Async").size());  // heads, items
  Launch launch = launch_of(looping_groups_);
  launch.grid[0] = 2 * 256;
  forget_calls();
  expect_redirected(launch);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_TRUE(calls("cuMemsetD8Async").empty());
  launch.grid[0] += 2;
  expect_redirected(launch);
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_EQ(2u, calls("cuMemsetD8Async").size());
}

TEST_F(RedirectQueuesTest, PoolBytesIsEachParentsOwnLimit) {
  const std::map<std::string, uint64_t> limits{{"parent", uint64_t{64} << 10}};
  CUlibrary library = nullptr;
  load_library(limits, library);
  Launch launch = launch_of(parent_);
  launch.grid[0] = 10;  // 640 records of 40 bytes
  expect_redirected(launch);
  launch.grid[0] = 100;
  expect_left(launch, "queue over pool_bytes");
  // Another parent may have a longer queue in the same stream; that changes nothing for this one.
  Launch large = launch_of(other_);
  large.grid[0] = 100;
  expect_redirected(large);
  expect_left(launch, "queue over pool_bytes");
  // The comfort of growing beyond what is needed ends at the limit too.
  for (const Call& call : calls("cuMemAlloc_v2")) EXPECT_LE(std::stoull(call["bytes"]), uint64_t{1} << 20);
  launch.grid[0] = 10;
  expect_redirected(launch);
  Registry::instance().remove_library(library);
  driver()->library_unload(library);
}

TEST_F(RedirectQueuesTest, GrowsAndGivesTheOldBlockToTheNextStream) {
  expect_redirected(launch_of(parent_));
  const std::string first = calls("cuMemAlloc_v2")[0]["address"];
  forget_calls();
  Launch large = launch_of(parent_);
  large.grid[0] = 1000;
  expect_redirected(large);
  ASSERT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_EQ(64000u, decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]).capacity);
  ASSERT_EQ(1u, calls("cuEventRecord").size());  // the old block waits for the work that uses it
  forget_calls();
  large.grid[0] = 1001;
  expect_redirected(large);
  EXPECT_EQ(128000u, decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]).capacity);

  forget_calls();
  Launch elsewhere = launch_of(parent_);
  elsewhere.stream = new_stream();
  expect_redirected(elsewhere);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_EQ(first, calls("cuMemcpyHtoDAsync_v2")[0]["to"]);
  EXPECT_EQ(1u, calls("cuEventDestroy_v2").size());
}

TEST_F(RedirectQueuesTest, BlocksInUseAreNotGivenOut) {
  setenv("FAKE_CUDA_FAIL", "cuEventQuery=600", 1);  // CUDA_ERROR_NOT_READY
  expect_redirected(launch_of(parent_));
  const std::string first = calls("cuMemAlloc_v2")[0]["address"];
  Launch large = launch_of(parent_);
  large.grid[0] = 1000;
  expect_redirected(large);
  Launch elsewhere = launch_of(parent_);
  elsewhere.stream = new_stream();
  forget_calls();
  expect_redirected(elsewhere);
  ASSERT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_NE(first, calls("cuMemAlloc_v2")[0]["address"]);
}

TEST_F(RedirectQueuesTest, VariantsWithDifferentRecordsShareAStream) {
  expect_redirected(launch_of(parent_));
  expect_redirected(launch_of(other_));
  const auto copies = calls("cuMemcpyHtoDAsync_v2");
  ASSERT_EQ(2u, copies.size());
  EXPECT_LE(uint64_t{4096} * 80, std::stoull(calls("cuMemAlloc_v2").back()["bytes"]));
  forget_calls();
  expect_redirected(launch_of(parent_));
  expect_redirected(launch_of(other_));
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty());
}

TEST_F(RedirectQueuesTest, EachLaunchSiteHasAQueueAndAConsumer) {
  expect_redirected(launch_of(several_));
  expect_redirected(launch_of(parent_));
  EXPECT_EQ((Names{"__klap_consumer", "__klap_other_consumer",                    // tried on the empty queues
                   "__klap_several", "__klap_consumer", "__klap_other_consumer",  //
                   "__klap_consumer", "__klap_parent", "__klap_consumer"}),
            launched());
  const auto launches = calls("cuLaunchKernel");
  const std::string first = launches[3]["params"], second = launches[4]["params"];
  EXPECT_NE(first, second);
  EXPECT_EQ("8877665544332211:ccbbaa99:" + first + second, launches[2]["params"]);
  EXPECT_EQ(first, launches[7]["params"]) << "parents of a stream share its queues";
  EXPECT_EQ(2u, calls("cuMemcpyHtoDAsync_v2").size());
  const auto blocks = calls("cuMemAlloc_v2");
  ASSERT_EQ(2u, blocks.size());
  EXPECT_GT(uint64_t{4096} * 80, std::stoull(blocks[0]["bytes"]));
  EXPECT_LE(uint64_t{4096} * 80, std::stoull(blocks[1]["bytes"]));
}

TEST_F(RedirectQueuesTest, EachGroupHasZeroedCounters) {
  expect_redirected(launch_of(grouped_));
  const auto head = calls("cuMemcpyHtoDAsync_v2").at(0), zeros = calls("cuMemsetD8Async").at(0);
  const KlapQueue queue = decoded(head["data"]);
  const auto groups = reinterpret_cast<uintptr_t>(queue.groups);
  EXPECT_EQ(groups, std::stoull(std::string(zeros["to"]), nullptr, 16));
  EXPECT_EQ("0", zeros["value"]);
  EXPECT_GE(std::stoull(std::string(zeros["bytes"])), 2 * sizeof(KlapGroup));
  EXPECT_GE(groups, std::stoull(std::string(head["to"]), nullptr, 16) + sizeof(KlapQueue));
  EXPECT_GE(reinterpret_cast<uintptr_t>(queue.prefix), groups + std::stoull(std::string(zeros["bytes"])));
}

TEST_F(RedirectQueuesTest, CountersStayWhileTheyAreEnough) {
  Launch launch = launch_of(grouped_);
  launch.block[0] = 1;
  launch.grid[0] = 500;
  expect_redirected(launch);
  forget_calls();
  launch.grid[0] = 1;
  expect_redirected(launch);
  launch.grid[0] = 499;
  expect_redirected(launch);
  expect_redirected(launch_of(launching_));
  EXPECT_TRUE(calls("cuMemsetD8Async").empty());
  launch.grid[0] = 2000;
  launch.grid[1] = 2;
  expect_redirected(launch);
  ASSERT_EQ(1u, calls("cuMemsetD8Async").size());
  EXPECT_GE(std::stoull(std::string(calls("cuMemsetD8Async")[0]["bytes"])), 2000 * sizeof(KlapGroup));
}

TEST_F(RedirectQueuesTest, TheGridAloneHasNoCountersToClear) {
  expect_redirected(launch_of(launching_));
  EXPECT_TRUE(calls("cuMemsetD8Async").empty());
  EXPECT_EQ(nullptr, decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]).groups);
}

TEST_F(RedirectQueuesTest, CountersAreClearedBehindOtherRecords) {
  expect_redirected(launch_of(launching_));
  forget_calls();
  expect_redirected(launch_of(grouped_));
  EXPECT_EQ(1u, calls("cuMemsetD8Async").size());
}

TEST_F(RedirectQueuesTest, BothLaunchersShareAStreamsQueue) {
  expect_redirected(launch_of(parent_));
  forget_calls();
  expect_redirected(launch_of(launching_));
  expect_redirected(launch_of(parent_));
  EXPECT_EQ((Names{"__klap_launching", "__klap_parent", "__klap_consumer"}), launched());
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty());
}

TEST_F(RedirectQueuesTest, WithoutMemoryTheOriginalRuns) {
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
  expect_left(launch_of(parent_), "no device memory");
  unsetenv("FAKE_CUDA_FAIL");
  expect_redirected(launch_of(parent_));
}

TEST_F(RedirectQueuesTest, GrowthFallsBackToWhatIsNeeded) {
  expect_redirected(launch_of(parent_));
  // The first attempt, twice the size, fails; the exact one succeeds.
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2@1", 1);
  Launch larger = launch_of(parent_);
  larger.grid[0] = 65;
  forget_calls();
  expect_redirected(larger);
  EXPECT_EQ(65u * 64, decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]).capacity);
}

}  // namespace
}  // namespace klap::runtime
