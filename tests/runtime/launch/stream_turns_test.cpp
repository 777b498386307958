// Threads that enqueue at the same time: who waits for whom, and that nobody waits without need or for ever.
#include "runtime/launch/stream_turns.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/driver.h"

namespace klap::runtime {
namespace {

CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number * 0x1000); }

// The context of all threads is none, whatever other tests have left.
class StreamTurns : public testing::Test {
 protected:
  StreamTurns() {
    if (driver() != nullptr) driver()->ctx_set_current(nullptr);
  }
};

void in_thread(const std::function<void()>& work) { std::thread(work).join(); }

void operate(CUstream in) {
  begin_operation(in);
  end_operation();
}

// True if an operation of another thread in `in` waits while this one launches in `launch`. A thread that
// does not wait may be kept from its processor, so the launch takes `at_most`, which is less than a second.
bool waits_for_launch(CUstream in, CUstream launch, bool is_blocking,
                      std::chrono::milliseconds at_most = std::chrono::milliseconds(100)) {
  std::atomic<bool> is_over{false}, has_waited{false}, has_begun{false};
  std::optional<WholeLaunch> whole(std::in_place, launch, is_blocking);
  std::thread other([&] {
    begin_operation(in);
    has_waited = is_over.load();
    has_begun = true;
    end_operation();
  });
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!has_begun && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  is_over = true;
  whole.reset();
  other.join();
  return has_waited;
}

TEST_F(StreamTurns, AnOperationWaitsWhereItCouldComeBetween) {
  EXPECT_TRUE(waits_for_launch(stream(1), stream(1), false));
  EXPECT_TRUE(waits_for_launch(stream(1), stream(1), true));
  EXPECT_TRUE(waits_for_launch(nullptr, nullptr, true));
  EXPECT_TRUE(waits_for_launch(nullptr, CU_STREAM_LEGACY, true));
  EXPECT_TRUE(waits_for_launch(nullptr, stream(1), true)) << "the legacy stream waits for blocking ones";
  EXPECT_TRUE(waits_for_launch(stream(1), nullptr, true)) << "and they for it";
  EXPECT_TRUE(waits_for_launch(CU_STREAM_PER_THREAD, nullptr, true));
  EXPECT_TRUE(waits_for_launch(nullptr, CU_STREAM_PER_THREAD, true));
  EXPECT_TRUE(waits_for_launch(kAllStreams, stream(1), false));
  EXPECT_TRUE(waits_for_launch(kAllLegacyStreams, nullptr, true));
  EXPECT_TRUE(waits_for_launch(kAllLegacyStreams, stream(1), true));
}

TEST_F(StreamTurns, AnOperationInAnotherStreamDoesNotWait) {
  const auto waits = [](CUstream in, CUstream launch, bool is_blocking) {
    return waits_for_launch(in, launch, is_blocking, std::chrono::milliseconds(800));
  };
  EXPECT_FALSE(waits(stream(2), stream(1), false));
  EXPECT_FALSE(waits(stream(2), stream(1), true));
  EXPECT_FALSE(waits(nullptr, stream(1), false));
  EXPECT_FALSE(waits(kAllLegacyStreams, stream(1), false));
  EXPECT_FALSE(waits(CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD, true)) << "each thread has its own";
}

TEST_F(StreamTurns, AThreadDoesNotWaitForItself) {
  const WholeLaunch whole(stream(1), true);
  operate(stream(1));
  before_wait(stream(1));
}

TEST_F(StreamTurns, WaitingForAStreamBeginsBehindALaunch) {
  std::atomic<bool> is_over{false}, has_waited{false};
  std::optional<WholeLaunch> whole(std::in_place, stream(1), false);
  in_thread([] { before_wait(stream(2)); });
  std::thread other([&] {
    before_wait(stream(1));
    has_waited = is_over.load();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  is_over = true;
  whole.reset();
  other.join();
  EXPECT_TRUE(has_waited);
}

// Threads that launch one after the other do not keep a thread that only waits.
TEST_F(StreamTurns, WaitingIsNotForLaterLaunches) {
  std::atomic<bool> is_over{false};
  std::latch have_begun(3);
  std::vector<std::thread> threads;
  for (uintptr_t t = 1; t <= 3; ++t) {
    threads.emplace_back([&, t] {
      std::optional<WholeLaunch> whole(std::in_place, stream(t), false);
      have_begun.count_down();
      while (!is_over) whole.emplace(stream(t), false);
    });
  }
  have_begun.wait();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) before_wait(kAllStreams);
  const auto end = std::chrono::steady_clock::now();
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(end - begin, std::chrono::seconds(10)) << "each would take a second";
}

// True if a launch begins behind a call that takes 2 ms.
bool launch_follows_call() {
  std::atomic<bool> is_done{false};
  std::latch has_begun(1);
  std::thread other([&] {
    begin_operation(stream(1));
    has_begun.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    is_done = true;
    end_operation();
  });
  has_begun.wait();
  const bool follows = [&] {
    const WholeLaunch whole(stream(1), false);
    return is_done.load();
  }();
  other.join();
  return follows;
}

// The call's thread may be kept from its processor for longer than a launch waits, but not each time.
TEST_F(StreamTurns, ALaunchWaitsForACallThatIsUnderWay) {
  int followed = 0;
  for (int i = 0; i < 20; ++i) followed += launch_follows_call() ? 1 : 0;
  EXPECT_GE(followed, 10);
}

// The call waits for the GPU, and the GPU for this thread.
TEST_F(StreamTurns, ALaunchDoesNotWaitForEver) {
  std::latch has_begun(1), may_end(1);
  std::thread other([&] {
    begin_operation(stream(1));
    has_begun.count_down();
    may_end.wait();
    end_operation();
  });
  has_begun.wait();
  for (int i = 0; i < 1000; ++i) const WholeLaunch whole(stream(1), false);
  may_end.count_down();
  other.join();
}

// They may all wait for the GPU.
TEST_F(StreamTurns, ALaunchWaitsForAllCallsAtOnce) {
  constexpr int kThreads = 100;
  std::latch have_begun(kThreads), may_end(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      begin_operation(stream(1));
      have_begun.count_down();
      may_end.wait();
      end_operation();
    });
  }
  have_begun.wait();
  const auto begin = std::chrono::steady_clock::now();
  std::optional<WholeLaunch> whole(std::in_place, stream(1), false);
  const auto end = std::chrono::steady_clock::now();
  whole.reset();
  may_end.count_down();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(end - begin, std::chrono::seconds(1)) << "one after the other would take two";
}

// Runs `work` while another thread is in the middle of a launch, for which the driver keeps it.
void beside_long_launch(CUstream in, const std::function<void()>& work) {
  std::latch has_begun(1), may_end(1);
  std::thread other([&] {
    const WholeLaunch whole(in, true);
    has_begun.count_down();
    may_end.wait();
  });
  has_begun.wait();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto end = std::chrono::steady_clock::now();
  may_end.count_down();
  other.join();
  EXPECT_LT(end - begin, std::chrono::seconds(10)) << "each would take a second";
}

TEST_F(StreamTurns, CallsWaitOnceForALongLaunch) {
  beside_long_launch(stream(1), [] {
    for (int i = 0; i < 20; ++i) operate(stream(1));
    for (int i = 0; i < 20; ++i) before_wait(stream(1));
  });
  beside_long_launch(stream(1), [] {
    for (int i = 0; i < 20; ++i) before_wait(stream(1));
  });
}

TEST_F(StreamTurns, LaunchesWaitOnceForALongLaunch) {
  beside_long_launch(stream(1), [] {
    for (int i = 0; i < 20; ++i) const WholeLaunch whole(nullptr, true);
  });
  beside_long_launch(nullptr, [] {
    for (int i = 0; i < 20; ++i) const WholeLaunch whole(stream(1), true);
  });
}

// Its stack is unwound when it has its turn, and not before.
TEST_F(StreamTurns, AThreadMayBeCancelledWhileItWaits) {
  std::optional<WholeLaunch> whole(std::in_place, stream(1), false);
  for (void (*const wait)(CUstream) :
       {+[](CUstream in) { begin_operation(in); }, +[](CUstream in) { before_wait(in); }}) {
    pthread_t waiting{};
    const auto run = [](void* what) -> void* {
      reinterpret_cast<void (*)(CUstream)>(what)(stream(1));
      pthread_testcancel();
      return nullptr;
    };
    ASSERT_EQ(0, pthread_create(&waiting, nullptr, run, reinterpret_cast<void*>(wait)));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ASSERT_EQ(0, pthread_cancel(waiting));
    whole.reset();
    void* result = nullptr;
    ASSERT_EQ(0, pthread_join(waiting, &result));
    EXPECT_EQ(PTHREAD_CANCELED, result);
    whole.emplace(stream(1), false);
  }
}

TEST_F(StreamTurns, LaunchesInTheLegacyStreamExcludeThoseInBlockingStreams) {
  std::atomic<int> legacy{0}, blocking{0}, together{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const bool is_legacy = t == 0;
        const WholeLaunch whole(is_legacy ? nullptr : stream(t), true);
        std::atomic<int>& own = is_legacy ? legacy : blocking;
        ++own;
        if ((is_legacy ? blocking : legacy) != 0) ++together;
        --own;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, together);
}

// Launches that follow each other closely do not keep the others, or this would not end.
TEST_F(StreamTurns, ManyThreadsInOneStream) {
  std::atomic<bool> is_half{false}, is_over{false};
  std::atomic<int> between{0}, operations{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      while (!is_over) {
        begin_operation(stream(1));
        if (is_half) ++between;
        ++operations;
        end_operation();
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 1000 || operations < 1000; ++i) {
    const WholeLaunch whole(stream(1), false);
    is_half = true;
    is_half = false;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, between);
}

// Slots of ended threads are used again.
TEST_F(StreamTurns, ThreadsComeAndGo) {
  for (int i = 0; i < 2000; ++i) in_thread([] { operate(stream(1)); });
  const WholeLaunch whole(stream(1), false);
}

}  // namespace
}  // namespace klap::runtime
