// Streams, events and host functions.
#include <atomic>
#include <thread>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::ElementsAre;

class StreamTest : public DriverTest {
 protected:
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream made = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuStreamCreate(&made, flags));
    return made;
  }
  CUevent event(unsigned flags = 0) {
    CUevent made = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuEventCreate(&made, flags));
    return made;
  }
};

void append(std::vector<int>& to, int value) { to.push_back(value); }

struct Entry {
  std::vector<int>* to;
  int value;
};

void note(void* entry) { append(*static_cast<Entry*>(entry)->to, static_cast<Entry*>(entry)->value); }

TEST_F(StreamTest, CallsHostFunctionsInOrder) {
  std::vector<int> seen;
  Entry one{&seen, 1}, two{&seen, 2}, three{&seen, 3};
  CUstream const a = stream(), b = stream();
  CUevent const done = event();
  OK(cuLaunchHostFunc(a, note, &one));
  OK(cuEventRecord(done, a));
  OK(cuStreamWaitEvent(b, done, 0));
  OK(cuLaunchHostFunc(b, note, &two));
  EXPECT_THAT(seen, ElementsAre());
  OK(cuStreamSynchronize(b));
  EXPECT_THAT(seen, ElementsAre(1, 2));
  OK(cuLaunchHostFunc(a, note, &three));
  OK(cuEventSynchronize(done));
  EXPECT_RESULT(CUDA_SUCCESS, cuEventQuery(done));
  OK(cuCtxSynchronize());
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

TEST_F(StreamTest, ForbidsCallsFromHostFunctions) {
  static CUresult result;
  OK(cuLaunchHostFunc(
      nullptr, [](void*) { result = cuCtxSynchronize(); }, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_RESULT(CUDA_ERROR_NOT_PERMITTED, result);
  static CUstream seen;
  OK(cuStreamAddCallback(
      nullptr, [](CUstream in, CUresult status, void*) { seen = in, result = status; }, nullptr, 0));
  seen = CU_STREAM_LEGACY;
  OK(cuCtxSynchronize());
  EXPECT_EQ(nullptr, seen);
  EXPECT_RESULT(CUDA_SUCCESS, result);
}

TEST_F(StreamTest, OrdersTheLegacyStreamWithBlockingOnes) {
  std::vector<int> seen;
  Entry one{&seen, 1}, two{&seen, 2};
  OK(cuLaunchHostFunc(stream(CU_STREAM_DEFAULT), note, &one));
  OK(cuLaunchHostFunc(nullptr, note, &two));
  OK(cuStreamSynchronize(nullptr));
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST_F(StreamTest, HasAStreamForEachThread) {
  unsigned long long mine = 0, legacy = 0, other = 0;
  OK(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
  OK(cuStreamGetId(nullptr, &legacy));
  std::thread([&] {
    OK(cuCtxSetCurrent(context));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &other));
  }).join();
  EXPECT_NE(mine, legacy);
  EXPECT_NE(mine, other);
  void* function = nullptr;
  OK(cuGetProcAddress("cuStreamGetId", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                      nullptr));
  OK(reinterpret_cast<decltype(&cuStreamGetId)>(function)(nullptr, &other));
  EXPECT_EQ(mine, other);
  OK(reinterpret_cast<decltype(&cuStreamGetId)>(function)(CU_STREAM_LEGACY, &other));
  EXPECT_EQ(legacy, other);
}

TEST_F(StreamTest, EndsWhenPolled) {
  const CUdeviceptr data = device_array(std::vector<int>(4096, 1));
  CUstream const in = stream();
  CUfunction const scale = function("kernels.ptx", "scale");
  for (int i = 0; i < 20; ++i) OK(launch(scale, 16, 256, 0, in, data, 4096, 1));
  CUevent const end = event();
  OK(cuEventRecord(end, in));
  int polls = 0;
  while (cuStreamQuery(in) == CUDA_ERROR_NOT_READY) ++polls;
  EXPECT_GT(polls, 0);
  EXPECT_RESULT(CUDA_SUCCESS, cuEventQuery(end));
}

TEST_F(StreamTest, MakesTimesUp) {
  CUevent const start = event(), end = event(), untimed = event(CU_EVENT_DISABLE_TIMING);
  float milliseconds = -1;
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
  OK(cuEventRecord(start, nullptr));
  OK(launch(function("kernels.ptx", "scale"), 1, 32, 0, nullptr, device_array({1}), 1, 1));
  OK(cuEventRecord(end, nullptr));
  OK(cuEventRecord(untimed, nullptr));
  OK(cuEventSynchronize(untimed));
  OK(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GT(milliseconds, 0);
  OK(cuEventElapsedTime(&milliseconds, end, start));
  EXPECT_LT(milliseconds, 0);
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, untimed));
}

TEST_F(StreamTest, KnowsItsProperties) {
  CUstream const in = stream();
  unsigned flags = 0;
  CUcontext owner = nullptr;
  int priority = -1;
  OK(cuStreamGetFlags(in, &flags));
  OK(cuStreamGetCtx(in, &owner));
  OK(cuStreamGetPriority(in, &priority));
  EXPECT_EQ(unsigned{CU_STREAM_NON_BLOCKING}, flags);
  EXPECT_EQ(context, owner);
  EXPECT_EQ(0, priority);
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_LEGACY));
}

TEST_F(StreamTest, CanBeUsedByManyThreads) {
  CUfunction const scale = function("kernels.ptx", "scale");
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      OK(cuCtxSetCurrent(context));
      CUstream const own = stream();
      const CUdeviceptr data = device_array({t});
      for (int i = 0; i < 4; ++i) OK(launch(scale, 1, 32, 0, own, data, 1, 2));
      OK(cuStreamSynchronize(own));
      right += host_array(data, 1).front() == t * 16;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(8, right);
}

}  // namespace
}  // namespace klap::emulator::driver_test
