// Launches: arguments, attributes, what is refused, and what device code does.
#include <array>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class LaunchTest : public DriverTest {};

TEST_F(LaunchTest, ComputesWithArgumentsByPointer) {
  const CUdeviceptr a = device_array({1, 2, 3}), b = device_array({10, 20, 30}),
                    out = device_array({0, 0, 0});
  OK(launch(function("kernels.ptx", "add"), 1, 32, 0, nullptr, out, a, b, 3));
  EXPECT_THAT(host_array(out, 3), ElementsAre(11, 22, 33));
}

TEST_F(LaunchTest, ComputesWithArgumentsInABuffer) {
  const CUdeviceptr data = device_array({1, 2, 3, 4});
  struct {
    CUdeviceptr data;
    int n, factor;
  } arguments{data, 3, 7};
  size_t bytes = sizeof arguments;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUfunction const scale = function("kernels.ptx", "scale");
  OK(cuLaunchKernel(scale, 2, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_THAT(host_array(data, 4), ElementsAre(7, 14, 21, 4));
  bytes = 8;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(scale, 2, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra));
}

TEST_F(LaunchTest, DoesNothingBeforeSomebodyWaits) {
  int* pinned = nullptr;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(int), 0));
  *pinned = 0;
  OK(launch(function("kernels.ptx", "store_at"), 1, 1, 0, nullptr, pinned));
  EXPECT_EQ(0, *pinned);
  OK(cuCtxSynchronize());
  EXPECT_EQ(1, *pinned);
}

TEST_F(LaunchTest, LetsKernelsLaunchKernels) {
  klap_emulator_counters before{}, after{};
  ASSERT_EQ(0, klap_emulator_counts(&before));
  const CUdeviceptr out = device_array(std::vector<int>(40, 0));
  OK(launch(function("kernels.ptx", "parent"), 1, 40, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 40), Each(32 * 33 / 2));
  ASSERT_EQ(0, klap_emulator_counts(&after));
  EXPECT_EQ(40U, after.device_launches - before.device_launches);
  EXPECT_EQ(1U, after.host_launches - before.host_launches);
  EXPECT_EQ(before.refused, after.refused);
  EXPECT_GT(after.steps, before.steps);
}

TEST_F(LaunchTest, LosesLaunchesOverThePendingLimit) {
  OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 8));
  size_t limit = 0;
  OK(cuCtxGetLimit(&limit, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
  EXPECT_EQ(8U, limit);
  klap_emulator_counters before{}, after{};
  ASSERT_EQ(0, klap_emulator_counts(&before));
  const CUdeviceptr out = device_array(std::vector<int>(40, 0));
  OK(launch(function("kernels.ptx", "parent"), 1, 40, 0, nullptr, out));
  const std::vector<int> result = host_array(out, 40);
  ASSERT_EQ(0, klap_emulator_counts(&after));
  EXPECT_GT(after.over_limit, before.over_limit);
  EXPECT_THAT(result, testing::Contains(0));
}

TEST_F(LaunchTest, TakesLaunchConfigurations) {
  const CUdeviceptr data = device_array({1, 2, 3, 4});
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {1, 1, 1};
  CUlaunchConfig config{1, 1, 1, 4, 1, 1, 0, nullptr, attributes, 2};
  int n = 4, factor = 2;
  void* arguments[] = {const_cast<CUdeviceptr*>(&data), &n, &factor};
  CUfunction const scale = function("kernels.ptx", "scale");
  OK(cuLaunchKernelEx(&config, scale, arguments, nullptr));
  EXPECT_THAT(host_array(data, 4), ElementsAre(2, 4, 6, 8));
  attributes[1].value.clusterDim.x = 2;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, scale, arguments, nullptr));
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED,
                cuLaunchCooperativeKernel(scale, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments));
}

TEST_F(LaunchTest, RefusesWhatTheDeviceCannotRun) {
  CUfunction const bounded = function("kernels.ptx", "bounded");
  const CUdeviceptr out = device_array(std::vector<int>(2048, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, launch(bounded, 1, 65, 0, nullptr, out));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, launch(bounded, 0, 64, 0, nullptr, out));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                launch(function("kernels.ptx", "store_at"), 1, 1025, 0, nullptr, out));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(bounded, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(nullptr, 1, 1, 0, nullptr, out));
  int nothing = 0;
  auto* const wrong = reinterpret_cast<CUfunction>(&nothing);
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(wrong, 1, 1, 0, nullptr, out));
  OK(launch(bounded, 1, 64, 0, nullptr, out));
  OK(cuCtxSynchronize());
}

TEST_F(LaunchTest, GivesMoreSharedMemoryWhenAsked) {
  CUfunction const reverse = function("kernels.ptx", "reverse");
  const CUdeviceptr data = device_array({1, 2, 3, 4});
  EXPECT_NE(CUDA_SUCCESS, launch(reverse, 1, 4, 100 << 10, nullptr, data));
  OK(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
  int most = 0;
  OK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, reverse));
  EXPECT_EQ(100 << 10, most);
  OK(launch(reverse, 1, 4, 100 << 10, nullptr, data));
  EXPECT_THAT(host_array(data, 4), ElementsAre(4, 3, 2, 1));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
}

TEST_F(LaunchTest, PrintsWhereTheProgramPrints) {
  testing::internal::CaptureStdout();
  OK(launch(function("kernels.ptx", "speak"), 1, 1, 0, nullptr, 42));
  OK(cuCtxSynchronize());
  EXPECT_EQ("the value is 42\n", testing::internal::GetCapturedStdout());
}

TEST_F(LaunchTest, KnowsOccupancy) {
  CUfunction const bounded = function("kernels.ptx", "bounded");
  int blocks = 0, grid = 0, block = 0, limit = 0;
  OK(cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
  EXPECT_EQ(64, limit);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 64, 0));
  EXPECT_GT(blocks, 0);
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, nullptr, 0, 0));
  EXPECT_EQ(64, block);
  int processors = 0;
  OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(blocks * processors, grid);
}

}  // namespace
}  // namespace klap::emulator::driver_test
