// Streams: a queue for each, found by id, given back when the stream or its thread ends; pairs never
// interleave.
#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <thread>

#include "fake_driver.h"
#include "runtime/launch/stream_turns.h"

namespace klap::runtime {
namespace {

class StreamsTest : public FakeDriverTest {
 protected:
  void launch_in(CUstream stream) {
    Launch launch = launch_of(parent_);
    launch.stream = stream;
    EXPECT_TRUE(redirect_launch(launch).has_value());
  }
  CUstream new_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, 0));
    return stream;
  }
  void destroy(CUstream stream) {
    stream_about_to_end(stream);
    EXPECT_EQ(CUDA_SUCCESS, driver()->stream_destroy_v2(stream));
  }
  std::string last_queue() const { return calls("cuLaunchKernel").back()["params"]; }
};

TEST_F(StreamsTest, EachStreamHasAQueue) {
  launch_in(nullptr);
  const std::string of_null = last_queue();
  launch_in(CU_STREAM_LEGACY);
  EXPECT_EQ(of_null, last_queue());
  launch_in(new_stream());
  const std::string of_created = last_queue();
  EXPECT_NE(of_null, of_created);
  launch_in(CU_STREAM_PER_THREAD);
  EXPECT_NE(of_null, last_queue());
  EXPECT_NE(of_created, last_queue());
  EXPECT_EQ("0x2", calls("cuLaunchKernel").back()["stream"]);
}

// A launch in a blocking stream may be a single kernel. It takes its turn, too.
TEST_F(StreamsTest, NoLaunchComesBetweenTheKernelsOfAnother) {
  const auto expect_to_wait = [&](CUfunction function) {
    std::atomic<bool> is_over{false};
    std::latch has_begun(1);
    std::thread other([&] {
      const WholeLaunch whole(nullptr, true);
      has_begun.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      is_over = true;
    });
    has_begun.wait();
    Launch launch = launch_of(function);
    launch.stream = new_stream();
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
    EXPECT_TRUE(is_over) << launched().back();
    other.join();
  };
  expect_to_wait(parent_);
  expect_to_wait(launching_);
  jit::Variant variant;
  variant.parent = "parent";
  variant.parent_variant = "other";  // has the same parameters
  variant.granularity = jit::Granularity::Warp;
  variant.launcher = jit::Launcher::Device;
  LoadedImage image;
  image.library = library_;
  image.variants = {variant};
  Registry::instance().remove_library(library_);
  Registry::instance().add(image);
  expect_to_wait(kernel("parent"));
}

// A copy that takes long on one device does not delay launches on another one.
TEST_F(StreamsTest, LegacyStreamsOfTwoContextsDoNotMeet) {
  const CUcontext first = context_;
  new_context();
  std::latch is_busy(1), is_launching(1), may_end(1);
  std::thread busy([&] {
    driver()->ctx_set_current(first);
    begin_operation(nullptr);
    is_busy.count_down();
    may_end.wait();
    end_operation();
  });
  is_busy.wait();  // it would wait for a launch that has begun before it
  std::thread launching([&] {
    driver()->ctx_set_current(first);
    const WholeLaunch whole(new_stream(), true);
    is_launching.count_down();
    may_end.wait();
  });
  is_launching.wait();
  launch_in(nullptr);
  { const Operation operation(nullptr); }
  const auto begin = std::chrono::steady_clock::now();
  { const Operation operation(kAllLegacyStreams); }
  // Nobody waits for a launch again that one has waited a second for.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500))
      << "a copy between the two contexts is the first that waits";
  may_end.count_down();
  busy.join();
  launching.join();
}

TEST_F(StreamsTest, DestroyedStreamGivesItsQueueBack) {
  const CUstream first = new_stream();
  launch_in(first);
  const std::string queue = last_queue();
  destroy(first);
  EXPECT_EQ("0x", calls("cuEventRecord").back()["stream"].substr(0, 2));
  forget_calls();
  const CUstream second = new_stream();
  ASSERT_EQ(first, second) << "the fake driver recycles addresses";
  launch_in(second);
  EXPECT_EQ(queue, last_queue());
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_EQ(1u, calls("cuMemcpyHtoDAsync_v2").size());  // written anew: the old owner's header means nothing
}

TEST_F(StreamsTest, DestroyedStreamGivesAllItsQueuesBack) {
  const CUstream first = new_stream();
  Launch launch = launch_of(several_);
  launch.stream = first;
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  destroy(first);
  EXPECT_EQ(1u, calls("cuEventRecord").size());
  forget_calls();
  launch.stream = new_stream();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_EQ(2u, calls("cuMemcpyHtoDAsync_v2").size());
}

TEST_F(StreamsTest, QueueOfABusyDestroyedStreamIsNotReused) {
  const CUstream first = new_stream();
  launch_in(first);
  const std::string queue = last_queue();
  setenv("FAKE_CUDA_FAIL", "cuEventQuery=600", 1);
  destroy(first);
  launch_in(new_stream());
  EXPECT_NE(queue, last_queue());
}

TEST_F(StreamsTest, StreamOfAnotherContextIsLeft) {
  const CUstream stream = new_stream();
  new_context();
  Launch launch = launch_of(parent_);
  launch.stream = stream;
  EXPECT_FALSE(redirect_launch(launch).has_value());
}

TEST_F(StreamsTest, PerThreadStreamsOfEndedThreadsGiveTheirQueuesBack) {
  const auto thread = [&] {
    fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
    launch_in(CU_STREAM_PER_THREAD);
    launch_in(CU_STREAM_PER_THREAD);
  };
  for (int i = 0; i < 5; ++i) std::thread(thread).join();
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_EQ(10u, calls("cuEventRecord").size());
}

TEST_F(StreamsTest, MainThreadsPerThreadStreamRecordsNoEvents) {
  launch_in(CU_STREAM_PER_THREAD);
  EXPECT_TRUE(calls("cuEventRecord").empty());
}

TEST_F(StreamsTest, PairsOfOneStreamStayTogether) {
  constexpr int kThreads = 8, kLaunches = 50;
  const CUstream shared = new_stream();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
      const CUstream own = new_stream();
      for (int i = 0; i < kLaunches; ++i) {
        launch_in(shared);
        launch_in(own);
      }
      destroy(own);
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::map<std::string, std::vector<std::string>> by_stream;
  for (const Call& call : calls("cuLaunchKernel")) by_stream[call["stream_id"]].push_back(call["kernel"]);
  EXPECT_EQ(kThreads + 1u, by_stream.size());
  for (const auto& [stream, kernels] : by_stream) {
    // The proof, where there was one, comes first; then parent and consumer take turns.
    size_t at = kernels[0] == "__klap_consumer" ? 1 : 0;
    ASSERT_EQ(0u, (kernels.size() - at) % 2);
    for (; at < kernels.size(); at += 2) {
      ASSERT_EQ("__klap_parent", kernels[at]) << stream;
      ASSERT_EQ("__klap_consumer", kernels[at + 1]) << stream;
    }
  }
}

TEST_F(StreamsTest, DestroyDuringCaptureRecordsNothing) {
  const CUstream stream = new_stream();
  launch_in(stream);
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  stream_about_to_end(stream);
  EXPECT_TRUE(calls("cuEventRecord").empty());
  CUgraph graph = nullptr;
  fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph);
}

}  // namespace
}  // namespace klap::runtime
