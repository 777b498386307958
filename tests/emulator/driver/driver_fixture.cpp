#include "driver_fixture.h"

#include <numeric>

#include "support/file.h"

namespace klap::emulator::driver_test {

std::string name_of(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : std::to_string(result);
}

std::string built(const std::string& file) { return std::string(KLAP_DRIVER_OBJECTS) + "/" + file; }

void DriverTest::SetUp() { restart(settings_); }

void DriverTest::restart(const char* settings) {
  TearDown();
  OK(cuInit(0));
  ASSERT_EQ(0, klap_emulator_reset(settings));
  OK(cuCtxCreate(&context, nullptr, 0, 0));
}

void DriverTest::TearDown() {
  if (context != nullptr) cuCtxDestroy(context);
  context = nullptr;
}

CUmodule DriverTest::load(const std::string& file) {
  CUmodule module = nullptr;
  EXPECT_RESULT(CUDA_SUCCESS, cuModuleLoad(&module, built(file).c_str()));
  return module;
}

CUfunction DriverTest::function(const std::string& file, const char* name) {
  CUfunction found = nullptr;
  EXPECT_RESULT(CUDA_SUCCESS, cuModuleGetFunction(&found, load(file), name));
  return found;
}

CUdeviceptr DriverTest::device_array(const std::vector<int>& values) {
  CUdeviceptr out = 0;
  EXPECT_RESULT(CUDA_SUCCESS, cuMemAlloc(&out, values.size() * sizeof(int)));
  EXPECT_RESULT(CUDA_SUCCESS, cuMemcpyHtoD(out, values.data(), values.size() * sizeof(int)));
  return out;
}

std::vector<int> DriverTest::host_array(CUdeviceptr from, size_t count) {
  std::vector<int> out(count);
  EXPECT_RESULT(CUDA_SUCCESS, cuMemcpyDtoH(out.data(), from, count * sizeof(int)));
  return out;
}

}  // namespace klap::emulator::driver_test
