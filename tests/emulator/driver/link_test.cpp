// The driver's linker.
#include <cstring>
#include <span>

#include "container/elf64.h"
#include "driver_fixture.h"
#include "support/file.h"

namespace klap::emulator::driver_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LinkTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    OK(cuLinkCreate(2, options_, values_, &link));
  }
  void TearDown() override {
    cuLinkDestroy(link);
    DriverTest::TearDown();
  }

  CUresult add(const std::string& text, const char* name) {
    std::string copy = text;
    return cuLinkAddData(link, CU_JIT_INPUT_PTX, copy.data(), copy.size() + 1, name, 0, nullptr, nullptr);
  }
  CUresult add_file(CUjitInputType type, const std::string& path) {
    return cuLinkAddFile(link, type, path.c_str(), 0, nullptr, nullptr);
  }

  CUlinkState link = nullptr;
  char log[500] = "";
  CUjit_option options_[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values_[2] = {log, reinterpret_cast<void*>(sizeof log)};
};

TEST_F(LinkTest, LinksUnitsOfAllForms) {
  OK(add_file(CU_JIT_INPUT_LIBRARY, KLAP_CUDADEVRT));
  OK(add_file(CU_JIT_INPUT_OBJECT, built("kernels.o")));
  OK(add_file(CU_JIT_INPUT_FATBINARY, built("several.fatbin")));
  void* image = nullptr;
  size_t bytes = 0;
  OK(cuLinkComplete(link, &image, &bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(link, &image, &bytes)) << "once is enough";
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, image));
  CUfunction parent = nullptr, count = nullptr, read = nullptr;
  OK(cuModuleGetFunction(&parent, module, "parent"));
  OK(cuModuleGetFunction(&count, module, "count"));
  OK(cuModuleGetFunction(&read, module, "read_counter"));
  const CUdeviceptr out = device_array({0, 0});
  OK(launch(parent, 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 1), ElementsAre(32 * 33 / 2));
  OK(launch(count, 1, 1, 0, nullptr, out));
  OK(launch(read, 1, 1, 0, nullptr, out));
  EXPECT_THAT(host_array(out, 1), ElementsAre(6));
}

TEST_F(LinkTest, MakesAnImageThatShowsItsKernels) {
  OK(add(read_file(built("kernels.ptx")), "kernels"));
  void* image = nullptr;
  size_t bytes = 0;
  OK(cuLinkComplete(link, &image, &bytes));
  const container::Elf64 elf({static_cast<const std::byte*>(image), bytes}, "linked");
  EXPECT_EQ(container::kMachineCuda, elf.machine());
  for (const char* name : {".text.parent", ".text.child", ".nv.constant0.parent", ".nv.constant0.child"}) {
    const container::ElfSection* const section = elf.find(name);
    ASSERT_NE(nullptr, section) << name;
    EXPECT_FALSE(elf.content(*section).empty()) << name;
  }
  EXPECT_EQ(nullptr, elf.find(".text.__cudaCDP2LaunchDeviceV2"));
  CUlibrary library = nullptr;
  OK(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel child = nullptr;
  OK(cuLibraryGetKernel(&child, library, "child"));
  OK(cuLibraryUnload(library));
}

TEST_F(LinkTest, RefusesMachineCode) {
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, add_file(CU_JIT_INPUT_CUBIN, built("kernels.cubin")));
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("machine code"));
}

constexpr char kWaiting[] = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 error) cudaDeviceSynchronize
()
;
.visible .entry kernel()
{
  .param .b32 error;
  call.uni (error), cudaDeviceSynchronize, ();
  ret;
}
)";

// As for compute capability 9.0: it is the call that is refused.
TEST_F(LinkTest, RefusesCodeThatWaitsIfItIsToldTo) {
  OK(add(kWaiting, "waiting"));
  cuLinkDestroy(link);
  restart("REFUSES_WAITS=1");
  values_[1] = reinterpret_cast<void*>(sizeof log);
  OK(cuLinkCreate(2, options_, values_, &link));
  EXPECT_RESULT(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, add(kWaiting, "waiting"));
  EXPECT_THAT(log, HasSubstr("cudaDeviceSynchronize"));
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  EXPECT_RESULT(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, cuModuleLoadData(&module, kWaiting));
  EXPECT_RESULT(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
                cuLibraryLoadData(&library, kWaiting, nullptr, nullptr, 0, nullptr, nullptr, 0));
  std::string idle = kWaiting;
  idle.erase(idle.find("  call"), idle.find("  ret;") - idle.find("  call"));
  OK(add(idle, "idle"));
}

TEST_F(LinkTest, FindsUndefinedNames) {
  OK(add(read_file(built("other.ptx")), "other"));
  void* image = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_NE(CUDA_SUCCESS, cuLinkComplete(link, &image, nullptr));
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("counter"));
}

TEST_F(LinkTest, FindsWrongSyntax) {
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, add(".version 9.0\n.target sm_90\n.func {", "broken.ptx"));
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("broken.ptx:3"));
}

}  // namespace
}  // namespace klap::emulator::driver_test
