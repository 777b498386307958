// Helpers for the tests of the emulated driver. The test program is linked with its libcuda.so.1 and calls it
// like any program.
#pragma once

#include <cuda.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "emulator/driver/control.h"

namespace klap::emulator::driver_test {

// "CUDA_ERROR_INVALID_VALUE", so that failures can be read.
std::string name_of(CUresult result);

#define EXPECT_RESULT(expected, call) EXPECT_EQ(name_of(expected), name_of(call))
#define ASSERT_RESULT(expected, call) ASSERT_EQ(name_of(expected), name_of(call))
#define OK(call) ASSERT_EQ(std::string("CUDA_SUCCESS"), name_of(call))

// A file that the build made of kernels.cu or other.cu.
std::string built(const std::string& file);

// Each test has a context of its own, on a device with these settings.
class DriverTest : public testing::Test {
 protected:
  explicit DriverTest(const char* settings = nullptr) : settings_(settings) {}
  void SetUp() override;
  void TearDown() override;

  // A new context with other settings takes the place of the present one.
  void restart(const char* settings);

  CUmodule load(const std::string& file);
  CUfunction function(const std::string& file, const char* name);
  static CUdeviceptr device_array(const std::vector<int>& values);
  static std::vector<int> host_array(CUdeviceptr from, size_t count);

  CUcontext context = nullptr;

 private:
  const char* settings_;
};

template <typename... Arguments>
CUresult launch(CUfunction function, unsigned blocks, unsigned threads, unsigned shared, CUstream stream,
                Arguments... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, nullptr);
}

}  // namespace klap::emulator::driver_test
