// What happens when something goes wrong: sticky errors, findings, calls with wrong handles.
#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::HasSubstr;

class ErrorTest : public DriverTest {};

TEST_F(ErrorTest, KeepsAnIllegalAccessForTheContext) {
  testing::internal::CaptureStderr();
  OK(launch(function("kernels.ptx", "store_at"), 1, 1, 0, nullptr, CUdeviceptr{16}));
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  CUdeviceptr memory = 0;
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&memory, 4));
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(nullptr));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("klap emulator:"), HasSubstr("store_at")));
  CUcontext other = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuMemAlloc(&memory, 4));
  OK(cuCtxDestroy(other));
}

TEST_F(ErrorTest, FindsAnAccessPastTheEnd) {
  const CUdeviceptr data = device_array({1, 2, 3});
  OK(launch(function("kernels.ptx", "store_at"), 1, 1, 0, nullptr, data + 12));
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(ErrorTest, FailsForARaceIfToldTo) {
  restart("RACES=1");
  const CUdeviceptr out = device_array({0});
  OK(launch(function("kernels.ptx", "race"), 2, 1, 0, nullptr, out));
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("klap emulator: "), HasSubstr("race")));
  EXPECT_GT(klap_emulator_findings(), 0U);
}

TEST_F(ErrorTest, OnlyReportsARaceIfToldTo) {
  restart("RACES=1 FINDINGS=report");
  EXPECT_EQ(0U, klap_emulator_findings());
  const CUdeviceptr out = device_array({0});
  OK(launch(function("kernels.ptx", "race"), 2, 1, 0, nullptr, out));
  OK(cuCtxSynchronize());
  EXPECT_GT(klap_emulator_findings(), 0U);
}

TEST_F(ErrorTest, FindsReadsOfWhatNobodyWrote) {
  restart("UNINITIALISED=1");
  CUdeviceptr data = 0;
  OK(cuMemAlloc(&data, 16));
  CUfunction const scale = function("kernels.ptx", "scale");
  OK(cuMemsetD32(data, 1, 2));
  OK(launch(scale, 1, 2, 0, nullptr, data, 2, 3));
  OK(cuCtxSynchronize());
  OK(launch(scale, 1, 3, 0, nullptr, data, 3, 3));
  EXPECT_RESULT(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
}

TEST_F(ErrorTest, KnowsWrongHandles) {
  int nothing = 0;
  auto* const stream = reinterpret_cast<CUstream>(&nothing);
  auto* const event = reinterpret_cast<CUevent>(&nothing);
  auto* const module = reinterpret_cast<CUmodule>(&nothing);
  auto* const graph = reinterpret_cast<CUgraph>(&nothing);
  CUfunction found = nullptr;
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(event));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&found, module, "add"));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuGraphDestroy(graph));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(reinterpret_cast<CUcontext>(&nothing)));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(4096));
  CUstream gone = nullptr;
  OK(cuStreamCreate(&gone, 0));
  OK(cuStreamDestroy(gone));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(gone));
}

TEST_F(ErrorTest, NeedsAContext) {
  OK(cuCtxSetCurrent(nullptr));
  CUdeviceptr memory = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 4));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
}

TEST_F(ErrorTest, NamesWhatIsNotSupported) {
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectDestroy(0));
  EXPECT_EQ("klap emulator: cuTexObjectDestroy is not supported\n", testing::internal::GetCapturedStderr());
}

TEST_F(ErrorTest, NamesEveryError) {
  const char* text = nullptr;
  OK(cuGetErrorName(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, &text));
  EXPECT_STREQ("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", text);
  OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  EXPECT_STREQ("cudaErrorInvalidValue", text);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(12345), &text));
}

}  // namespace
}  // namespace klap::emulator::driver_test
