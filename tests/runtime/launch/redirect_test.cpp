// Which launches are redirected, what is launched in their place, and what stays.
#include <nlohmann/json.hpp>
#include <thread>

#include "fake_driver.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/stats.h"

namespace klap::runtime {
namespace {

using Names = std::vector<std::string>;

KlapQueue decoded(const std::string& hex) {
  KlapQueue queue{};
  auto* const bytes = reinterpret_cast<unsigned char*>(&queue);
  for (size_t i = 0; i < sizeof queue && 2 * i + 1 < hex.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return queue;
}

class RedirectTest : public FakeDriverTest {
 protected:
  // Redirects, expecting success.
  void expect_redirected(const Launch& launch) {
    const auto result = redirect_launch(launch);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(CUDA_SUCCESS, *result);
  }
  // Expects the original to be asked for, nothing launched, and the reason to be counted.
  void expect_left(const Launch& launch, const std::string& reason, const std::string& name = "parent") {
    const auto left = [&] {
      const nlohmann::json reasons = Stats::instance().to_json()["launches"]["left"];
      return reasons.value(name, nlohmann::json::object()).value(reason, 0);
    };
    const int before = left();
    forget_calls();
    EXPECT_EQ(std::nullopt, redirect_launch(launch));
    EXPECT_EQ(Names{}, launched());
    EXPECT_EQ(before + 1, left()) << reason;
  }
  CUstream new_stream(unsigned flags = 0) {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, flags));
    return stream;
  }
};

TEST_F(RedirectTest, LaunchesVariantThenConsumerOnOneQueue) {
  expect_redirected(launch_of(parent_));
  // The consumer runs once on the empty queue before the variant is trusted.
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
  const auto launches = calls("cuLaunchKernel");
  EXPECT_EQ("4,1,1", launches[1]["grid"]);
  EXPECT_EQ("64,1,1", launches[1]["block"]);
  EXPECT_EQ("128,1,1", launches[2]["block"]);
  EXPECT_EQ("2112,1,1", launches[2]["grid"]);  // 132 multiprocessors, 16 blocks of 128 threads on each
  const std::string queue = launches[2]["params"];
  EXPECT_EQ("8877665544332211:ccbbaa99:" + queue, launches[1]["params"]);
  EXPECT_EQ(launches[0]["params"], queue);
}

TEST_F(RedirectTest, QueueHeaderDescribesItsArrays) {
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

TEST_F(RedirectTest, SteadyStateOnlyLaunches) {
  expect_redirected(launch_of(parent_));
  forget_calls();
  for (int i = 0; i < 3; ++i) expect_redirected(launch_of(parent_));
  EXPECT_EQ(6u, calls().size());
  EXPECT_EQ((Names{"__klap_parent", "__klap_consumer", "__klap_parent", "__klap_consumer", "__klap_parent",
                   "__klap_consumer"}),
            launched());
}

TEST_F(RedirectTest, UnknownHandlesAreNotTouched) {
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(kernel("child"))));
  EXPECT_TRUE(launched().empty());
}

TEST_F(RedirectTest, PackedParametersArePaddedUpToTheQueue) {
  unsigned char buffer[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  Launch launch = launch_of(other_);
  launch.params = nullptr;
  launch.extra = extra;
  expect_redirected(launch);
  const auto launches = calls("cuLaunchKernel");
  EXPECT_EQ("0102030405060708090a0b0c:0d:" + launches[2]["params"], launches[1]["params"]);
  EXPECT_EQ(13u, bytes);

  bytes = 12;
  expect_left(launch, "parameters missing", "other");
  bytes = 13;
  void* unknown[] = {reinterpret_cast<void*>(7), nullptr, CU_LAUNCH_PARAM_END};
  launch.extra = unknown;
  expect_left(launch, "unknown launch option", "other");
  launch.params = params_;
  launch.extra = extra;
  expect_left(launch, "both parameter forms", "other");
  launch.params = nullptr;
  launch.extra = nullptr;
  expect_left(launch, "parameters missing", "other");
}

TEST_F(RedirectTest, LaunchesThatNoQueueCanHoldAreLeft) {
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
TEST_F(RedirectTest, GroupsThatNoQueueHasPartsForAreLeft) {
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
TEST_F(RedirectTest, HeadsOfGroupsAreMadeOnce) {
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

TEST_F(RedirectTest, ConsumerOfGroupsMustFit) {
  setenv("FAKE_CUDA_THREADS", "__klap_consumer=64", 1);
  expect_left(launch_of(looping_groups_), "consumer block over its limit", "looping_groups");
}

TEST_F(RedirectTest, PoolBytesIsEachParentsOwnLimit) {
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

TEST_F(RedirectTest, GrowsAndGivesTheOldBlockToTheNextStream) {
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

TEST_F(RedirectTest, BlocksInUseAreNotGivenOut) {
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

TEST_F(RedirectTest, VariantsWithDifferentRecordsShareAStream) {
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

TEST_F(RedirectTest, OnlyHarmlessAttributesAreRedirected) {
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -3;
  Launch launch = launch_of(parent_);
  launch.attributes = attributes;
  expect_redirected(launch);
  const auto launches = calls("cuLaunchKernelEx");
  ASSERT_EQ(2u, launches.size());
  EXPECT_EQ("__klap_parent", launches[0]["kernel"]);
  EXPECT_EQ("0=0;8=-3;", launches[0]["attributes"]);
  EXPECT_EQ("__klap_consumer", launches[1]["kernel"]);
  EXPECT_EQ("8=-3;", launches[1]["attributes"]);

  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  expect_left(launch, "cooperative launch");
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  expect_left(launch, "cluster launch");
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
  expect_left(launch, "launch attribute");
}

TEST_F(RedirectTest, CapturedStreamsAreLeft) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(parent_);
  launch.stream = stream;
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect_left(launch, "stream capture");
  launch.stream = nullptr;  // implicitly part of the capture: the driver refuses even the question
  expect_left(launch, "stream capture");
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  launch.stream = stream;
  expect_left(launch, "parents in graphs");  // replays must find the launches they would find natively
}

// Also those of parents that would run as they are without it.
TEST_F(RedirectTest, EveryCapturedParentIsTakenNoteOf) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(of_one_row_);
  launch.stream = stream;
  launch.block[1] = 2;
  expect_left(launch, "order matters here", "of_one_row");
  expect_redirected(launch_of(parent_));
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect_left(launch, "stream capture", "of_one_row");
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  expect_left(launch_of(parent_), "parents in graphs");
}

TEST_F(RedirectTest, AllocatesWhileAnotherThreadCaptures) {
  const CUstream captured = new_stream(CU_STREAM_NON_BLOCKING);
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
  std::thread([&] {
    fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
    expect_redirected(launch_of(parent_));
    CUdeviceptr address = 0;  // the thread's own mode is back
    EXPECT_NE(CUDA_SUCCESS, driver()->mem_alloc(&address, 256));
  }).join();
  CUgraph graph = nullptr;
  // Ended by the plain allocation above, not by the launch.
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(captured, &graph));
}

TEST_F(RedirectTest, BlockSizesAreCheckedAgainstTheKernels) {
  setenv("FAKE_CUDA_THREADS", "__klap_parent=256", 1);
  expect_redirected(launch_of(parent_));
  Launch launch = launch_of(parent_);
  launch.block[0] = 257;
  expect_left(launch, "block over the variant's limit");
}

// Blocks that wait for each other must all be resident, as they are natively.
TEST_F(RedirectTest, ParentsThatWaitKeepTheirOccupancy) {
  setenv("FAKE_CUDA_OCCUPANCY", "__klap_other=3,other=3", 1);
  expect_redirected(launch_of(other_));
  setenv("FAKE_CUDA_OCCUPANCY", "__klap_other=2,other=3", 1);
  expect_left(launch_of(other_), "fewer blocks resident", "other");
  setenv("FAKE_CUDA_FAIL", "cuOccupancyMaxActiveBlocksPerMultiprocessor:__klap_other=1", 1);
  expect_left(launch_of(other_), "fewer blocks resident", "other");
  unsetenv("FAKE_CUDA_FAIL");
  setenv("FAKE_CUDA_OCCUPANCY", "__klap_parent=1,parent=3", 1);
  expect_redirected(launch_of(parent_));  // it does not wait
}

// The same of a variant that is launched in the original's place.
TEST_F(RedirectTest, ParentsThatWaitKeepTheirOccupancyByWarps) {
  Registry::instance().remove_library(library_);
  jit::Variant variant;
  variant.parent = "parent";
  variant.parent_variant = "other";  // has the same parameters
  variant.granularity = jit::Granularity::Warp;
  variant.launcher = jit::Launcher::Device;
  variant.parent_waits = true;
  LoadedImage image;
  image.library = library_;
  image.variants = {variant};
  Registry::instance().add(image);
  parent_ = kernel("parent");
  setenv("FAKE_CUDA_OCCUPANCY", "other=2,parent=3", 1);
  expect_left(launch_of(parent_), "fewer blocks resident");
  setenv("FAKE_CUDA_OCCUPANCY", "other=3,parent=3", 1);
  expect_redirected(launch_of(parent_));
  EXPECT_EQ((Names{"other"}), launched());
}

TEST_F(RedirectTest, ChildrenOverTheirLimitRunNatively) {
  setenv("FAKE_CUDA_THREADS", "child=64", 1);
  expect_left(launch_of(parent_), "child block over the child's limit");
  unsetenv("FAKE_CUDA_THREADS");
  expect_left(launch_of(parent_), "child block over the child's limit");  // settled for this context
}

TEST_F(RedirectTest, EveryKernelThatAConsumerRunsIsChecked) {
  setenv("FAKE_CUDA_THREADS", "grandchild=128", 1);
  expect_left(launch_of(nesting_), "child block over the child's limit", "nesting");
}

TEST_F(RedirectTest, EveryKernelThatAConsumerRunsMustBeThere) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:grandchild=500", 1);
  expect_left(launch_of(nesting_), "missing handle", "nesting");
}

TEST_F(RedirectTest, ConsumersOfSeveralKernelsAreUsed) { expect_redirected(launch_of(nesting_)); }

// Launches in blocks of 16x8, then of 64x4, then of 16x8 again.
TEST_F(RedirectTest, ConsumersWhoseKernelsFollowTheParentsBlockHaveItsThreads) {
  const auto launch_in = [&](unsigned x, unsigned y) {
    Launch launch = launch_of(following_);
    launch.block[0] = x;
    launch.block[1] = y;
    forget_calls();
    expect_redirected(launch);
    std::vector<std::string> blocks;
    for (const Call& call : calls("cuLaunchKernel")) {
      if (call["kernel"] == "__klap_following_consumer") blocks.push_back(call["block"]);
    }
    return blocks;
  };
  EXPECT_EQ((Names{"128,1,1", "128,1,1"}), launch_in(16, 8));  // the proof, and behind the parent
  EXPECT_EQ((Names{"256,1,1", "256,1,1"}), launch_in(64, 4));
  EXPECT_EQ((Names{"128,1,1"}), launch_in(16, 8));
}

TEST_F(RedirectTest, ConsumersWhoseKernelsFollowTheParentsBlockAreUsedOnlyWhereAllOfThemFit) {
  Launch launch = launch_of(following_);
  launch.block[0] = 64;  // the other kernel has more, and this one's threads meet
  expect_left(launch, "not the consumer's block", "following");
  launch.block[0] = 140;  // the last warp is not full
  expect_left(launch, "not the consumer's block", "following");
  launch.block[0] = 128;
  expect_redirected(launch);
  setenv("FAKE_CUDA_THREADS", "child=128", 1);
  launch.block[0] = 256;
  expect_left(launch, "child block over the child's limit", "following");
  setenv("FAKE_CUDA_THREADS", "__klap_following_consumer=256", 1);
  launch.block[0] = 512;
  expect_left(launch, "consumer block over its limit", "following");
}

TEST_F(RedirectTest, VariantsForSomeBlocksAreUsedInTheseOnly) {
  Launch launch = launch_of(of_one_row_);
  expect_redirected(launch);
  launch.block[1] = 2;
  expect_left(launch, "order matters here", "of_one_row");
  launch.block[1] = 1;
  launch.block[2] = 2;
  expect_left(launch, "order matters here", "of_one_row");
  launch.block[2] = 1;
  launch.block[0] = 256;
  launch.grid[1] = 2;
  expect_redirected(launch);
  launch.grid[2] = 2;
  expect_left(launch, "order matters here", "of_one_row");
}

TEST_F(RedirectTest, ConsumerThatDoesNotFitIsNeverUsed) {
  setenv("FAKE_CUDA_THREADS", "__klap_consumer=64", 1);
  expect_left(launch_of(parent_), "consumer block over its limit");
}

TEST_F(RedirectTest, ConsumerIsProvenBeforeAnythingIsRecorded) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=701", 1);
  expect_left(launch_of(parent_), "consumer does not launch");
  unsetenv("FAKE_CUDA_FAIL");
  expect_left(launch_of(parent_), "consumer does not launch");
}

TEST_F(RedirectTest, MissingKernelsLeaveTheParent) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:__klap_consumer=500", 1);
  expect_left(launch_of(parent_), "missing handle");
}

TEST_F(RedirectTest, VariantThatDoesNotLaunchGivesWayToTheOriginal) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_parent=701@1", 1);
  forget_calls();
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(parent_)));
  EXPECT_EQ((Names{"__klap_consumer"}), launched());  // the proof alone: no records, so no consumer
  expect_redirected(launch_of(parent_));
}

TEST_F(RedirectTest, ConsumerFailureIsTheLaunchsResultAndEndsTheStream) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=700@2+", 1);
  const auto result = redirect_launch(launch_of(parent_));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, *result);
  unsetenv("FAKE_CUDA_FAIL");
  expect_left(launch_of(parent_), "consumer failed earlier in this stream");
  Launch elsewhere = launch_of(parent_);
  elsewhere.stream = new_stream();
  expect_redirected(elsewhere);
}

TEST_F(RedirectTest, ConsumerThatFailsInPassingIsLaunchedAgain) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=2@2", 1);
  expect_redirected(launch_of(parent_));
  unsetenv("FAKE_CUDA_FAIL");
  expect_redirected(launch_of(parent_));
}

// ---- launcher "device" ----

TEST_F(RedirectTest, ParentThatLaunchesItsChildrenIsAllThatIsEnqueued) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(launching_);
  launch.stream = stream;
  expect_redirected(launch);
  expect_redirected(launch);
  EXPECT_EQ((Names{"__klap_launching", "__klap_launching"}), launched());
  const auto launches = calls("cuLaunchKernel");
  const KlapQueue queue = decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]);
  EXPECT_EQ(4096u, queue.capacity);
  EXPECT_EQ("8877665544332211:ccbbaa99:", launches[0]["params"].substr(0, 26));
  EXPECT_EQ(launches[0]["params"], launches[1]["params"]);
}

TEST_F(RedirectTest, EachLaunchSiteHasAQueueAndAConsumer) {
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

// ---- groups ----

TEST_F(RedirectTest, EachGroupHasZeroedCounters) {
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

TEST_F(RedirectTest, CountersStayWhileTheyAreEnough) {
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

TEST_F(RedirectTest, TheGridAloneHasNoCountersToClear) {
  expect_redirected(launch_of(launching_));
  EXPECT_TRUE(calls("cuMemsetD8Async").empty());
  EXPECT_EQ(nullptr, decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]).groups);
}

TEST_F(RedirectTest, CountersAreClearedBehindOtherRecords) {
  expect_redirected(launch_of(launching_));
  forget_calls();
  expect_redirected(launch_of(grouped_));
  EXPECT_EQ(1u, calls("cuMemsetD8Async").size());
}

TEST_F(RedirectTest, BothLaunchersShareAStreamsQueue) {
  expect_redirected(launch_of(parent_));
  forget_calls();
  expect_redirected(launch_of(launching_));
  expect_redirected(launch_of(parent_));
  EXPECT_EQ((Names{"__klap_launching", "__klap_parent", "__klap_consumer"}), launched());
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty());
}

TEST_F(RedirectTest, ExactConsumerThatDoesNotFitIsNeverUsed) {
  setenv("FAKE_CUDA_THREADS", "__klap_exact_consumer=64", 1);
  expect_left(launch_of(launching_), "consumer block over its limit", "launching");
}

TEST_F(RedirectTest, MissingExactConsumerLeavesTheParent) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:__klap_exact_consumer=500", 1);
  expect_left(launch_of(launching_), "missing handle", "launching");
}

TEST_F(RedirectTest, LaunchingParentThatDoesNotLaunchGivesWayToTheOriginal) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_launching=701@1", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(launching_)));
  EXPECT_EQ(Names{}, launched());
  expect_redirected(launch_of(launching_));
}

TEST_F(RedirectTest, WithoutMemoryTheOriginalRuns) {
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
  expect_left(launch_of(parent_), "no device memory");
  unsetenv("FAKE_CUDA_FAIL");
  expect_redirected(launch_of(parent_));
}

TEST_F(RedirectTest, GrowthFallsBackToWhatIsNeeded) {
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
