// Devices and contexts.
#include <thread>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

class ContextTest : public DriverTest {};

int attribute(CUdevice_attribute which) {
  int value = -1;
  EXPECT_RESULT(CUDA_SUCCESS, cuDeviceGetAttribute(&value, which, 0));
  return value;
}

TEST_F(ContextTest, DescribesTheDeviceThatWasSet) {
  EXPECT_EQ(1, attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS));
  restart("MULTIPROCESSORS=7 COMPUTE_CAPABILITY=86 MEMORY=123456789 SHARED_MANAGED=0");
  EXPECT_EQ(0, attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS));
  EXPECT_EQ(7, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(8, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT_EQ(6, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  EXPECT_EQ(32, attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  size_t bytes = 0;
  OK(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(123456789U, bytes);
  char name[64];
  OK(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ("klap emulated GPU", name);
  int version = 0, value = 0;
  OK(cuDriverGetVersion(&version));
  EXPECT_EQ(13000, version);
  EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
}

TEST_F(ContextTest, KeepsAStackForEachThread) {
  CUcontext second = nullptr, now = nullptr;
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  OK(cuCtxGetCurrent(&now));
  EXPECT_EQ(second, now);
  OK(cuCtxPopCurrent(&now));
  EXPECT_EQ(second, now);
  OK(cuCtxGetCurrent(&now));
  EXPECT_EQ(context, now);
  std::thread([&] {
    OK(cuCtxGetCurrent(&now));
    EXPECT_EQ(nullptr, now);
  }).join();
  unsigned long long first_id = 0, second_id = 0;
  OK(cuCtxGetId(nullptr, &first_id));
  OK(cuCtxGetId(second, &second_id));
  EXPECT_NE(first_id, second_id);
  OK(cuCtxDestroy(second));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(second));
}

TEST_F(ContextTest, SharesThePrimaryContext) {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 0;
  int active = 1;
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(0, active);
  OK(cuDevicePrimaryCtxRetain(&first, 0));
  OK(cuDevicePrimaryCtxRetain(&second, 0));
  EXPECT_EQ(first, second);
  OK(cuDevicePrimaryCtxRelease(0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(1, active);
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(first));
  unsigned long long id_before = 0, id_after = 0;
  OK(cuCtxGetId(first, &id_before));
  OK(cuDevicePrimaryCtxReset(0));
  OK(cuDevicePrimaryCtxRetain(&second, 0));
  OK(cuCtxGetId(second, &id_after));
  EXPECT_NE(id_before, id_after);
  OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
}

TEST_F(ContextTest, KeepsLimits) {
  for (const CUlimit limit : {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE,
                              CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT}) {
    size_t value = 0;
    OK(cuCtxGetLimit(&value, limit));
    EXPECT_NE(0U, value);
    OK(cuCtxSetLimit(limit, 1 << 22));
    OK(cuCtxGetLimit(&value, limit));
    EXPECT_EQ(size_t{1} << 22, value);
  }
  EXPECT_RESULT(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_MAX, 1));
}

TEST_F(ContextTest, KeepsMemoriesApart) {
  const CUdeviceptr data = device_array({5});
  CUcontext second = nullptr;
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  const CUdeviceptr copy = device_array({0});
  OK(cuMemcpyPeer(copy, second, data, context, 4));
  EXPECT_EQ(5, host_array(copy, 1).front());
  OK(launch(function("kernels.ptx", "store_at"), 1, 1, 0, nullptr, data));
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  testing::internal::GetCapturedStderr();
  OK(cuCtxDestroy(second));
  EXPECT_EQ(5, host_array(data, 1).front());
}

}  // namespace
}  // namespace klap::emulator::driver_test
