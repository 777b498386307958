// Parents, children and consumers that do not fit the device or each other: their launches are left.
#include <gmock/gmock.h>

#include "redirected.h"

namespace klap::runtime {
namespace {

class RedirectLimitsTest : public RedirectTest {
 protected:
  // Registers the first parent again, whose queue is changed so.
  void change_queue(const std::function<void(jit::ChildQueue&)>& change) {
    Registry::instance().remove_library(library_);
    LoadedImage image;
    image.library = library_;
    image.variants = {variants().front()};
    change(image.variants.front().queues.front());
    Registry::instance().add(image);
    parent_ = kernel("parent");
  }
};

TEST_F(RedirectLimitsTest, ConsumerOfGroupsMustFit) {
  setenv("FAKE_CUDA_THREADS", "__klap_consumer=64", 1);
  expect_left(launch_of(looping_groups_), "consumer block over its limit", "looping_groups");
}

TEST_F(RedirectLimitsTest, BlockSizesAreCheckedAgainstTheKernels) {
  setenv("FAKE_CUDA_THREADS", "__klap_parent=256", 1);
  expect_redirected(launch_of(parent_));
  Launch launch = launch_of(parent_);
  launch.block[0] = 257;
  expect_left(launch, "block over the variant's limit");
}

// Blocks that wait for each other must all be resident, as they are natively.
TEST_F(RedirectLimitsTest, ParentsThatWaitKeepTheirOccupancy) {
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
TEST_F(RedirectLimitsTest, ParentsThatWaitKeepTheirOccupancyByWarps) {
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

TEST_F(RedirectLimitsTest, ChildrenOverTheirLimitRunNatively) {
  setenv("FAKE_CUDA_THREADS", "child=64", 1);
  expect_left(launch_of(parent_), "child block over the child's limit");
  unsetenv("FAKE_CUDA_THREADS");
  expect_left(launch_of(parent_), "child block over the child's limit");  // settled for this context
}

// The program may set the limit between two launches.
TEST_F(RedirectLimitsTest, LimitsOfSharedMemoryMustBeTheKnownOnes) {
  change_queue([](jit::ChildQueue& queue) { queue.shared_limits = {{"child", 1000, true}}; });
  setenv("FAKE_CUDA_SHARED", "child=1000", 1);
  expect_redirected(launch_of(parent_));
  for (const char* other : {"child=1004", "child=996"}) {
    setenv("FAKE_CUDA_SHARED", other, 1);
    expect_left(launch_of(parent_), "other limit of shared memory");
  }
  setenv("FAKE_CUDA_SHARED", "child=1000", 1);
  expect_redirected(launch_of(parent_));
}

// If the code bounds what launches ask for, a larger limit changes nothing.
TEST_F(RedirectLimitsTest, BoundedSharedMemoryMustBeAllowed) {
  change_queue([](jit::ChildQueue& queue) { queue.shared_limits = {{"child", 1000, false}}; });
  setenv("FAKE_CUDA_SHARED", "child=5000", 1);
  expect_redirected(launch_of(parent_));
  setenv("FAKE_CUDA_SHARED", "child=996", 1);
  expect_left(launch_of(parent_), "other limit of shared memory");
}

TEST_F(RedirectLimitsTest, ConsumersGetTheSharedMemoryThatTheyNeed) {
  change_queue([](jit::ChildQueue& queue) { queue.child_shared_bytes = 60000; });
  expect_redirected(launch_of(parent_));
  EXPECT_THAT(read_file(log_),
              testing::HasSubstr("cuFuncSetAttribute kernel=__klap_consumer attribute=8 value=60000"));
}

TEST_F(RedirectLimitsTest, ConsumersMayNotGetTheSharedMemoryThatTheyNeed) {
  change_queue([](jit::ChildQueue& queue) { queue.child_shared_bytes = 60000; });
  setenv("FAKE_CUDA_FAIL", "cuFuncSetAttribute:__klap_consumer=1", 1);
  expect_left(launch_of(parent_), "consumer does not fit the device");
}

TEST_F(RedirectLimitsTest, EveryKernelThatAConsumerRunsIsChecked) {
  setenv("FAKE_CUDA_THREADS", "grandchild=128", 1);
  expect_left(launch_of(nesting_), "child block over the child's limit", "nesting");
}

TEST_F(RedirectLimitsTest, EveryKernelThatAConsumerRunsMustBeThere) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:grandchild=500", 1);
  expect_left(launch_of(nesting_), "missing handle", "nesting");
}

TEST_F(RedirectLimitsTest, ConsumersOfSeveralKernelsAreUsed) { expect_redirected(launch_of(nesting_)); }

// Launches in blocks of 16x8, then of 64x4, then of 16x8 again.
TEST_F(RedirectLimitsTest, ConsumersWhoseKernelsFollowTheParentsBlockHaveItsThreads) {
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

TEST_F(RedirectLimitsTest, ConsumersWhoseKernelsFollowTheParentsBlockAreUsedOnlyWhereAllOfThemFit) {
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

// The consumer of a kernel of 100 threads, and of one whose rows are as long as the parent's or of 8 threads.
TEST_F(RedirectLimitsTest, BoundedConsumersHaveTheThreadsOfTheLargestBlock) {
  change_queue([](jit::ChildQueue& queue) {
    queue.consumer_block_threads = 1024;
    queue.bounds = {{.block = {100, 1, 1}, .threads = 100},
                    {.block = {8, 4, 1}, .or_parents = {true, false, true}, .threads = 1000}};
  });
  const auto threads_in = [&](unsigned x, unsigned y, unsigned z) {
    Launch launch = launch_of(parent_);
    launch.block[0] = x, launch.block[1] = y, launch.block[2] = z;
    forget_calls();
    expect_redirected(launch);
    std::string block;
    for (const Call& call : calls("cuLaunchKernel")) {
      if (call["kernel"] == "__klap_consumer") block = call["block"];
    }
    return block;
  };
  EXPECT_EQ("128,1,1", threads_in(16, 8, 1));  // of the first kernel, in full warps
  EXPECT_EQ("256,1,1", threads_in(64, 2, 1));
  EXPECT_EQ("160,1,1", threads_in(4, 1, 5)) << "rows of 8 threads";
  EXPECT_EQ("1024,1,1", threads_in(256, 1, 2)) << "CUDA has no larger blocks";
}

TEST_F(RedirectLimitsTest, VariantsForSomeBlocksAreUsedInTheseOnly) {
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

TEST_F(RedirectLimitsTest, ConsumerThatDoesNotFitIsNeverUsed) {
  setenv("FAKE_CUDA_THREADS", "__klap_consumer=64", 1);
  expect_left(launch_of(parent_), "consumer block over its limit");
}

TEST_F(RedirectLimitsTest, ConsumerIsProvenBeforeAnythingIsRecorded) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=701", 1);
  expect_left(launch_of(parent_), "consumer does not launch");
  unsetenv("FAKE_CUDA_FAIL");
  expect_left(launch_of(parent_), "consumer does not launch");
}

TEST_F(RedirectLimitsTest, MissingKernelsLeaveTheParent) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:__klap_consumer=500", 1);
  expect_left(launch_of(parent_), "missing handle");
}

TEST_F(RedirectLimitsTest, ExactConsumerThatDoesNotFitIsNeverUsed) {
  setenv("FAKE_CUDA_THREADS", "__klap_exact_consumer=64", 1);
  expect_left(launch_of(launching_), "consumer block over its limit", "launching");
}

TEST_F(RedirectLimitsTest, MissingExactConsumerLeavesTheParent) {
  setenv("FAKE_CUDA_FAIL", "cuLibraryGetKernel:__klap_exact_consumer=500", 1);
  expect_left(launch_of(launching_), "missing handle", "launching");
}

}  // namespace
}  // namespace klap::runtime
