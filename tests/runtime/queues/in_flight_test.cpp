// Launches behind work that waits for the host: the driver's queue must have room for as many as natively.
#include "runtime/queues/in_flight.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "runtime/queues/launch_context.h"
#include "tests/runtime/launch/fake_driver.h"

// Allocations of the thread fail while this is set.
static thread_local bool no_memory = false;
void* operator new(std::size_t bytes) {
  void* const memory = no_memory ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace klap::runtime {
namespace {

class InFlightTest : public FakeDriverTest {
 protected:
  ~InFlightTest() override { gate(false); }
  static void gate(bool closed) { fake<void (*)(int)>("fakeGate")(closed ? 1 : 0); }

  // As the shim does it: the original where nothing is redirected.
  CUresult launch(CUfunction function, CUstream stream = nullptr, unsigned blocks = 4) {
    Launch launch = launch_of(function);
    launch.stream = stream;
    launch.grid[0] = blocks;
    if (const auto result = redirect_launch(launch)) {
      ++redirected_;
      return *result;
    }
    return driver()->launch_kernel(launch.function, blocks, 1, 1, launch.block[0], 1, 1, 0, stream,
                                   launch.params, nullptr);
  }
  void launch_many(int count, CUfunction function, CUstream stream = nullptr) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(CUDA_SUCCESS, launch(function, stream)) << i;
  }
  static CUstream new_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, 0));
    return stream;
  }

  int redirected_ = 0;
};

TEST_F(InFlightTest, AsManyParentsAsNativelyFitBehindAGate) {
  gate(true);
  launch_many(880, parent_);
  EXPECT_LT(100, redirected_);
  EXPECT_GE(128, redirected_);
}

TEST_F(InFlightTest, AlsoWithSeveralConsumers) {
  gate(true);
  launch_many(880, several_);
  EXPECT_LT(50, redirected_);
}

TEST_F(InFlightTest, StreamsShareAQueue) {
  gate(true);
  std::vector<CUstream> streams(40);
  for (CUstream& stream : streams) stream = new_stream();
  for (int i = 0; i < 15; ++i)
    for (const CUstream stream : streams) ASSERT_EQ(CUDA_SUCCESS, launch(parent_, stream));
  EXPECT_GE(128, redirected_);
}

TEST_F(InFlightTest, StreamsThatEndStillCount) {
  gate(true);
  for (int i = 0; i < 300; ++i) {
    const CUstream stream = new_stream();
    ASSERT_EQ(CUDA_SUCCESS, launch(parent_, stream)) << i;
    stream_about_to_end(stream);
    ASSERT_EQ(CUDA_SUCCESS, driver()->stream_destroy_v2(stream));
  }
  EXPECT_GE(128, redirected_);
}

TEST_F(InFlightTest, AllAreRedirectedWhereWorkGetsDone) {
  launch_many(1000, parent_);
  EXPECT_EQ(1000, redirected_);
  launch_many(1000, parent_, new_stream());
  EXPECT_EQ(2000, redirected_);
}

TEST_F(InFlightTest, NothingIsAskedBeforeThereAreMany) {
  launch_many(100, parent_);
  EXPECT_TRUE(calls("cuStreamQuery").empty());
  EXPECT_GE(100u / InFlight::kUnmarked, calls("cuEventRecord").size());
}

// The thread of another stream may begin to capture it at any moment. To ask about it would end the capture.
TEST_F(InFlightTest, OtherStreamsAreNotAskedAbout) {
  std::vector<CUstream> streams(300);
  for (CUstream& stream : streams) stream = new_stream();
  for (int i = 0; i < 3; ++i) {
    for (const CUstream stream : streams) {
      forget_calls();
      ASSERT_EQ(CUDA_SUCCESS, launch(parent_, stream));
      for (const Call& asked : calls("cuStreamQuery"))
        ASSERT_EQ(fmt::format("{}", fmt::ptr(stream)), asked["stream"]);
    }
  }
  EXPECT_EQ(900, redirected_);
}

TEST_F(InFlightTest, WaitsForADeviceThatIsOnlyBehind) {
  gate(true);
  std::thread opens([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate(false);
  });
  launch_many(400, parent_);
  opens.join();
  EXPECT_EQ(400, redirected_);
}

TEST_F(InFlightTest, PatienceIsLostOnlyOnceBehindAGate) {
  gate(true);
  const auto start = std::chrono::steady_clock::now();
  launch_many(600, parent_);
  EXPECT_GT(std::chrono::seconds(5), std::chrono::steady_clock::now() - start);
  gate(false);
  const int before = redirected_;
  launch_many(600, parent_);
  EXPECT_EQ(before + 600, redirected_);
}

// Whoever launches in a thread's default stream leaves nothing there that only that thread could ask for.
TEST_F(InFlightTest, ThreadsLeaveNothingBehind) {
  for (int i = 0; i < 40; ++i) {
    std::thread([this] {
      fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
      launch_many(7, parent_, CU_STREAM_PER_THREAD);
    }).join();
  }
  EXPECT_EQ(40 * 7, redirected_);
}

// Behind a launch nothing may be thrown, or the shim would launch the original as well.
TEST_F(InFlightTest, WithoutMemoryNothingIsThrownBehindALaunch) {
  LaunchContext context(std::make_shared<CudaContext>(1), nullptr);
  forget_calls();
  no_memory = true;
  context.added(InFlight::kUnmarked);
  no_memory = false;
  EXPECT_TRUE(calls("cuEventRecord").empty());
  context.added(1);
  EXPECT_EQ(1u, calls("cuEventRecord").size()) << "marked with the next one";
  no_memory = true;
  context.in_flight().settle();
  no_memory = false;
  EXPECT_TRUE(context.in_flight().has_room(InFlight::kMost)) << "each is completed once";
}

TEST_F(InFlightTest, ManySlicesNeedAStreamThatIsIdle) {
  load_library({{"sliced", 6000}}, library_);
  EXPECT_EQ(CUDA_SUCCESS, launch(sliced_, nullptr, 1000));
  EXPECT_EQ(1, redirected_);
  const size_t slices = launched().size() / 2;
  EXPECT_LT(InFlight::kMost, slices);
  // What the program has just put there may be done in a moment.
  gate(true);
  std::thread opens([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate(false);
  });
  EXPECT_EQ(CUDA_SUCCESS, launch(sliced_, nullptr, 1000));
  opens.join();
  EXPECT_EQ(2, redirected_);
  gate(true);
  EXPECT_EQ(CUDA_SUCCESS, launch(sliced_, nullptr, 1000));
  EXPECT_EQ(2, redirected_);
}

}  // namespace
}  // namespace klap::runtime
