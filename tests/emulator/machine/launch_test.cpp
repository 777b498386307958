// Launches that CUDA refuses, the names of the machine's functions, and what the device says of itself.
#include <cuda.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "emulator/decode/builtins.h"
#include "emulator/device_runtime/device_attributes.h"
#include "emulator/grids/grid.h"

namespace klap::emulator {
namespace {

struct LaunchErrorTest : public ::testing::Test {
  LaunchErrorTest() {
    kernel.is_kernel = true;
    launch.kernel = &kernel;
  }
  Function kernel;
  Launch launch;
};

TEST_F(LaunchErrorTest, DimensionsMustFitTheDevice) {
  EXPECT_EQ(launch_error(launch), 0);
  const auto with = [this](Dim3 grid, Dim3 block) {
    launch.grid = grid;
    launch.block = block;
    return launch_error(launch);
  };
  EXPECT_EQ(with({0x7fffffff, 65535, 65535}, {1024, 1, 1}), 0);
  EXPECT_EQ(with({1, 1, 1}, {16, 1, 64}), 0);
  for (const Dim3& bad :
       {Dim3{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {0x80000000, 1, 1}, {1, 65536, 1}, {1, 1, 65536}})
    EXPECT_EQ(with(bad, {1, 1, 1}), 9);
  for (const Dim3& bad : {Dim3{0, 1, 1}, {1025, 1, 1}, {33, 32, 1}, {1, 1, 65}, {1, 1025, 1}})
    EXPECT_EQ(with({1, 1, 1}, bad), 9);
}

TEST_F(LaunchErrorTest, TheKernelHasLimits) {
  kernel.limits.maximum = {64, 2, 0};
  launch.block = {128, 1, 1};
  EXPECT_EQ(launch_error(launch), 0);
  launch.block = {129, 1, 1};
  EXPECT_EQ(launch_error(launch), 1);
  kernel.limits = {};
  kernel.limits.required = {32, 4, 0};
  launch.block = {32, 4, 1};
  EXPECT_EQ(launch_error(launch), 0);
  launch.block = {4, 32, 1};
  EXPECT_EQ(launch_error(launch), 1);
}

TEST_F(LaunchErrorTest, SharedMemoryIsLimited) {
  kernel.shared_bytes = 1024;
  launch.dynamic_shared = 47 * 1024;
  EXPECT_EQ(launch_error(launch), 0);
  ++launch.dynamic_shared;
  EXPECT_EQ(launch_error(launch), 1);
  EXPECT_EQ(launch_error(launch, kDefaultSharedLimit, true), 9);
  EXPECT_EQ(launch_error(launch, 100 * 1024), 0);
  launch.dynamic_shared = 0xffffffff;
  EXPECT_EQ(launch_error(launch, 100 * 1024), 1);
  EXPECT_EQ(launch_error(launch, 100 * 1024, true), 9);
}

TEST_F(LaunchErrorTest, ThereMustBeAKernelAndItsParameters) {
  kernel.parameter_bytes = 8;
  EXPECT_EQ(launch_error(launch), 1);
  launch.parameters.resize(8);
  EXPECT_EQ(launch_error(launch), 0);
  kernel.is_kernel = false;
  EXPECT_EQ(launch_error(launch), 1);
  EXPECT_EQ(launch_error(Launch{}), 1);
}

TEST(Builtins, SeveralNamesStandForOneFunction) {
  const int launch = find_builtin("__cudaCDP2LaunchDeviceV2");
  EXPECT_EQ(launch, static_cast<int>(Builtin::LaunchDeviceV2));
  EXPECT_EQ(find_builtin("cudaLaunchDeviceV2"), launch);
  EXPECT_EQ(find_builtin("cudaLaunchDeviceV2_ptsz"), find_builtin("__cudaCDP2LaunchDeviceV2_ptsz"));
  EXPECT_NE(find_builtin("cudaLaunchDeviceV2_ptsz"), launch);
  EXPECT_NE(find_builtin("cudaMalloc"), find_builtin("malloc"));
  EXPECT_EQ(builtin_name(launch), "__cudaCDP2LaunchDeviceV2");
  EXPECT_EQ(find_builtin("__cudaCDP2"), -1);
  EXPECT_EQ(find_builtin("_Z6parentPi"), -1);
  EXPECT_EQ(builtin_name(-1), "?");
}

// Every function that the toolkit's header declares for device code.
TEST(Builtins, CoverTheToolkitsHeader) {
  std::ifstream file(KLAP_CUDA_INCLUDE "/cuda_device_runtime_api.h");
  ASSERT_TRUE(file);
  const std::regex declaration(R"(^extern .*__cudart_builtin__.* (CUDARTAPI )\**(\w+)\(.*;)");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (std::smatch match; std::regex_search(line, match, declaration)) names.insert(match[2]);
  }
  EXPECT_GT(names.size(), 80u);
  for (const std::string& name : names) EXPECT_NE(find_builtin(name), -1) << name;
}

TEST(Device, AttributesHaveTheDriversNumbers) {
  DeviceShape shape;
  shape.compute_capability = 87;
  shape.multiprocessors = 3;
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 3);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 8);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 7);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 64);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), 65535);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            static_cast<int>(shape.shared_per_block_optin));
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
            static_cast<int>(shape.resident_blocks));
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
  EXPECT_EQ(device_attribute(shape, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS), 1);
  EXPECT_EQ(device_attribute(shape, 0), std::nullopt);
}

TEST(Device, ErrorsHaveNames) {
  EXPECT_EQ(runtime_error_name(69), "cudaErrorLaunchPendingCountExceeded");
  EXPECT_EQ(runtime_error_name(-5), "unrecognized error code");
}

}  // namespace
}  // namespace klap::emulator
