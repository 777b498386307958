// Modules and libraries, from all the forms that code comes in.
#include <algorithm>
#include <cstring>

#include "driver_fixture.h"
#include "support/file.h"

namespace klap::emulator::driver_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class LoadTest : public DriverTest {
 protected:
  CUlibrary library(const std::string& file) {
    CUlibrary loaded = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuLibraryLoadFromFile(&loaded, built(file).c_str(), nullptr, nullptr, 0,
                                                      nullptr, nullptr, 0));
    return loaded;
  }
  CUkernel kernel(CUlibrary from, const char* name) {
    CUkernel found = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuLibraryGetKernel(&found, from, name));
    return found;
  }
};

TEST_F(LoadTest, FindsFunctionsAndVariables) {
  CUmodule const module = load("kernels.ptx");
  CUfunction found = nullptr;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&found, module, "missing"));
  OK(cuModuleGetFunction(&found, module, "count"));
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  OK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  EXPECT_EQ(sizeof(int), bytes);
  EXPECT_THAT(host_array(counter, 1), ElementsAre(5));
  const CUdeviceptr out = device_array({0, 0});
  OK(launch(found, 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 2), ElementsAre(5, 20));
  EXPECT_THAT(host_array(counter, 1), ElementsAre(6));
  const char* name = nullptr;
  OK(cuFuncGetName(&name, found));
  EXPECT_STREQ("count", name);
  unsigned count = 0;
  OK(cuModuleGetFunctionCount(&count, module));
  std::vector<CUfunction> all(count);
  OK(cuModuleEnumerateFunctions(all.data(), count, module));
  EXPECT_THAT(all, testing::Contains(found));
  OK(cuModuleUnload(module));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&found, module, "count"));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(found, 1, 1, 0, nullptr, out));
}

TEST_F(LoadTest, TakesFatbins) {
  const std::string bytes = read_file(built("kernels.fatbin"));
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, bytes.data()));
  CUfunction found = nullptr;
  OK(cuModuleGetFunction(&found, module, "parent"));
  const CUdeviceptr out = device_array({0});
  OK(launch(found, 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 1), ElementsAre(32 * 33 / 2));
}

TEST_F(LoadTest, RefusesMachineCodeAlone) {
  const std::string bytes = read_file(built("kernels.cubin"));
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, bytes.data()));
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, built("kernels.cubin").c_str()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("machine code"));
}

// The file holds PTX for 7.5, 9.0 and 10.0; a device can run what is not newer than itself.
TEST_F(LoadTest, ChoosesThePtxForTheDevice) {
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  restart("COMPUTE_CAPABILITY=70");
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, built("several.fatbin").c_str()));
  restart("COMPUTE_CAPABILITY=90");
  // The unit refers to a variable of another one.
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, cuModuleLoad(&module, built("several.fatbin").c_str()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), AllOf(HasSubstr("sm_70"), HasSubstr("counter")));
}

TEST_F(LoadTest, RefusesPtxForOtherDevices) {
  CUmodule module = nullptr;
  const auto loaded = [&](const std::string& target) {
    const std::string text =
        ".version 9.0\n.target " + target + ", debug\n.address_size 64\n.visible .entry f() { ret; }\n";
    return cuModuleLoadData(&module, text.c_str());
  };
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_SUCCESS, loaded("sm_75"));
  EXPECT_RESULT(CUDA_SUCCESS, loaded("sm_90a"));
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, loaded("sm_100"));
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, loaded("sm_80a"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("for sm_80a and does not run on sm_90"));
}

TEST_F(LoadTest, TellsWhatIsWrong) {
  char log[200] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX,
                cuModuleLoadDataEx(&module, ".version 9.0\n.target sm_90\n.address_size 64\n.func {", 2,
                                   options, values));
  EXPECT_THAT(log, HasSubstr("PTX module:4"));
  EXPECT_EQ(std::strlen(log), reinterpret_cast<size_t>(values[1]));
  EXPECT_RESULT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file"));
  EXPECT_RESULT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "garbage"));
  testing::internal::GetCapturedStderr();
}

TEST_F(LoadTest, RefusesToRunWhatItDoesNotKnow) {
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry known() { ret; }
.visible .entry unknown() {
  frobnicate.b32;
  ret;
}
)"));
  CUfunction known = nullptr, unknown = nullptr;
  OK(cuModuleGetFunction(&known, module, "known"));
  OK(cuModuleGetFunction(&unknown, module, "unknown"));
  OK(launch(known, 1, 1, 0, nullptr));
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, launch(unknown, 1, 1, 0, nullptr));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), AllOf(HasSubstr("frobnicate"), HasSubstr(":7")));
  OK(cuCtxSynchronize());
}

TEST_F(LoadTest, HasLibrariesInEveryContext) {
  CUlibrary const code = library("kernels.ptx");
  CUkernel const count = kernel(code, "count");
  const CUdeviceptr out = device_array({0, 0});
  for (int i = 0; i < 2; ++i) OK(launch(reinterpret_cast<CUfunction>(count), 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 1), ElementsAre(6));
  CUfunction as_function = nullptr;
  OK(cuKernelGetFunction(&as_function, count));
  OK(launch(as_function, 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 1), ElementsAre(7));
  CUdeviceptr counter = 0, managed = 0;
  OK(cuLibraryGetGlobal(&counter, nullptr, code, "counter"));
  EXPECT_THAT(host_array(counter, 1), ElementsAre(8));
  OK(cuLibraryGetManaged(&managed, nullptr, code, "shared_with_host"));
  EXPECT_EQ(3, *reinterpret_cast<int*>(managed));
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&managed, nullptr, code, "counter"));

  CUcontext second = nullptr;
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  const CUdeviceptr there = device_array({0, 0});
  OK(launch(reinterpret_cast<CUfunction>(count), 1, 1, 0, nullptr, there));
  EXPECT_THAT(host_array(there, 1), ElementsAre(5));
  OK(cuCtxDestroy(second));
  OK(cuLibraryUnload(code));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE,
                launch(reinterpret_cast<CUfunction>(count), 1, 1, 0, nullptr, out));
}

TEST_F(LoadTest, KeepsAttributesOfKernels) {
  CUlibrary const code = library("kernels.ptx");
  CUkernel const reverse = kernel(code, "reverse");
  OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10, reverse, 0));
  int value = 0;
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, reverse, 0));
  EXPECT_EQ(100 << 10, value);
  const CUdeviceptr data = device_array({1, 2});
  OK(launch(reinterpret_cast<CUfunction>(reverse), 1, 2, 100 << 10, nullptr, data));
  EXPECT_THAT(host_array(data, 2), ElementsAre(2, 1));
  unsigned count = 0;
  OK(cuLibraryGetKernelCount(&count, code));
  std::vector<CUkernel> all(count);
  OK(cuLibraryEnumerateKernels(all.data(), count, code));
  EXPECT_THAT(all, testing::Contains(reverse));
  const char* name = nullptr;
  OK(cuKernelGetName(&name, reverse));
  EXPECT_STREQ("reverse", name);
  CUkernel missing = nullptr;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&missing, code, "missing"));
}

}  // namespace
}  // namespace klap::emulator::driver_test
