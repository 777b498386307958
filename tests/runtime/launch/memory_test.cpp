// Memory is the program's first: queues take a small share of it, and give it back where the program has
// none.
#include <chrono>
#include <string>
#include <thread>

#include "runtime/queues/block_pool.h"
#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

class MemoryTest : public FakeDriverTest {
 protected:
  void launch(CUfunction function, CUstream stream = nullptr) {
    Launch launch = launch_of(function);
    launch.stream = stream;
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  }
  [[nodiscard]] size_t free_memory() const {
    size_t left = 0, total = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->mem_get_info(&left, &total));
    return left;
  }
  // From now on there are so many bytes beside what is allocated already.
  void leave(size_t bytes) {
    size_t left = 0, total = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->mem_get_info(&left, &total));
    setenv("FAKE_CUDA_MEMORY", std::to_string(total - left + bytes).c_str(), 1);
  }
  CUstream new_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, 0));
    return stream;
  }
};

TEST_F(MemoryTest, AllStreamsGiveTheirsBack) {
  const size_t before = free_memory();
  launch(parent_);
  launch(several_, new_stream());
  launch(nesting_);
  EXPECT_GT(before, free_memory());
  EXPECT_TRUE(give_back_queue_memory());
  EXPECT_EQ(before, free_memory());
  EXPECT_FALSE(give_back_queue_memory()) << "there is nothing left";
}

TEST_F(MemoryTest, LaterLaunchesHaveQueuesAgain) {
  launch(parent_);
  ASSERT_TRUE(give_back_queue_memory());
  forget_calls();
  launch(parent_);
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_EQ(1u, calls("cuMemcpyHtoDAsync_v2").size()) << "the head of the new queue";
  EXPECT_EQ((std::vector<std::string>{"__klap_parent", "__klap_consumer"}), launched());
}

TEST_F(MemoryTest, WithoutQueuesNothingIsDone) {
  forget_calls();
  EXPECT_FALSE(give_back_queue_memory());
  EXPECT_TRUE(calls().empty());
}

TEST_F(MemoryTest, AnotherContextKeepsItsOwn) {
  launch(parent_);
  const size_t with_queue = free_memory();
  CUcontext first = context_;
  new_context();
  EXPECT_FALSE(give_back_queue_memory());
  EXPECT_EQ(with_queue, free_memory());
  fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(first);
  EXPECT_TRUE(give_back_queue_memory());
}

// An event recorded there would become part of the graph.
TEST_F(MemoryTest, CapturedStreamsKeepTheirs) {
  const CUstream stream = new_stream();
  launch(parent_, stream);
  CUgraph graph = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(
                              stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  forget_calls();
  EXPECT_FALSE(give_back_queue_memory());
  EXPECT_TRUE(calls("cuEventRecord").empty());
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  EXPECT_TRUE(give_back_queue_memory());
}

// An event for this thread's default stream would say nothing of the other's.
TEST_F(MemoryTest, DefaultStreamsOfOtherThreads) {
  launch(parent_, CU_STREAM_PER_THREAD);
  const CUcontext context = context_;
  std::thread([context] {
    fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context);
    EXPECT_FALSE(give_back_queue_memory()) << "the main thread's has no event";
  }).join();
  EXPECT_TRUE(give_back_queue_memory());
}

TEST_F(MemoryTest, WhatIsInUseStays) {
  constexpr std::chrono::milliseconds kPatience(5);
  BlockPool pool(~uint64_t{0});
  MaybeReason why = nullptr;
  const Block block = pool.take(4096, why);
  pool.retire({block}, CUstream{});
  forget_calls();
  setenv("FAKE_CUDA_FAIL", "cuEventQuery=600", 1);
  EXPECT_EQ(0u, pool.give_back(kPatience));
  EXPECT_TRUE(calls("cuMemFree_v2").empty()) << "it would wait for the whole device";
  setenv("FAKE_CUDA_FAIL", "cuEventQuery=600@1,", 1);
  EXPECT_EQ(4096u, pool.give_back(std::chrono::seconds(60)));
  EXPECT_EQ(1u, calls("cuMemFree_v2").size());
}

TEST_F(MemoryTest, AllQueuesTogetherTakeAnEighth) {
  leave(8000000);
  BlockPool pool(~uint64_t{0});
  MaybeReason why = nullptr;
  EXPECT_NE(0u, pool.take(600000, why).address);
  EXPECT_EQ(0u, pool.take(400001, why).address);
  EXPECT_EQ(&reasons::kQueuesOverShare, why);
  EXPECT_EQ(&reasons::kQueuesOverShare, pool.reserve(400001));
  EXPECT_NE(0u, pool.take(400000, why).address);
  EXPECT_EQ(nullptr, why);
}

// A recursion's queue would like 256 MB, which is all that queues may take here.
TEST_F(MemoryTest, ManyStreamsShareLittleMemory) {
  leave(size_t{2} << 30);
  for (int i = 0; i < 40; ++i) launch(nesting_, new_stream());
  EXPECT_LE(size_t{2} << 30, free_memory() + (size_t{2} << 30) / 8);
}

TEST_F(MemoryTest, AStreamKeepsTheQueueThatItHas) {
  const CUstream first = new_stream();
  launch(nesting_, first);
  leave(size_t{1} << 20);
  forget_calls();
  launch(nesting_, first);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty()) << "of another head";
}

// The original in a graph is worse than one in a stream.
TEST_F(MemoryTest, GraphsFindMemoryWhereStreamsHaveTakenTheirs) {
  leave(8000000);
  BlockPool pool(~uint64_t{0});
  MaybeReason why = nullptr;
  EXPECT_NE(0u, pool.take(1000000, why).address);
  EXPECT_EQ(0u, pool.left(BlockOf::Stream));
  EXPECT_EQ(250000u, pool.left(BlockOf::Node));
  EXPECT_EQ(0u, pool.take(250001, why, BlockOf::Node).address);
  EXPECT_EQ(&reasons::kQueuesOverShare, why);
  EXPECT_NE(0u, pool.take(250000, why, BlockOf::Node).address);
  EXPECT_EQ(0u, pool.left(BlockOf::Node));
}

TEST_F(MemoryTest, NobodyMayTakeMoreThanAll) {
  leave(8000000);
  BlockPool pool(600000);
  MaybeReason why = nullptr;
  EXPECT_EQ(600000u, pool.left(BlockOf::Node));
  EXPECT_EQ(480000u, pool.left(BlockOf::Stream)) << "some is left for graphs";
  EXPECT_EQ(0u, pool.take(600001, why, BlockOf::Node).address);
  EXPECT_EQ(&reasons::kQueuesOverTotalBytes, why);
}

TEST_F(MemoryTest, UnknownIsAsGoodAsNone) {
  setenv("FAKE_CUDA_FAIL", "cuMemGetInfo_v2=999", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(parent_)));
}

TEST_F(MemoryTest, LittleMemoryMeansSlicesOrTheOriginal) {
  leave(100000);
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 16;
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  EXPECT_LT(2u, launched().size());
  EXPECT_LE(size_t{100000} - 100000 / 8, free_memory());
  launch.function = parent_;
  EXPECT_EQ(std::nullopt, redirect_launch(launch));
}

}  // namespace
}  // namespace klap::runtime
