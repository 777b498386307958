// That the stand-in gives what NVRTC gives, whether it compiles or remembers, and remembers nothing but what
// is the same in all that decides about it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <nvrtc.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/file.h"

namespace klap::test {
namespace {

constexpr const char* kSource =
    "#include \"what.h\"\n__global__ void store(int* to) { *to = KLAP_WHAT + IT; }\n";

class NvrtcOnce : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/nvrtc-once-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    setenv("KLAP_NVRTC_ONCE_DIR", folder_.c_str(), 1);
    library_ = dlopen(KLAP_NVRTC_ONCE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(nullptr, library_) << dlerror();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
// Of its own it has no such function: only the type is asked for.
#define KLAP_FIND(function) find<decltype(&(function))>(#function)

  // The PTX, or the log where there is none.
  std::string compile(const std::string& source, const std::string& option, const std::string& header) const {
    const char* const text = header.c_str();
    const char* const name = "what.h";
    nvrtcProgram program = nullptr;
    EXPECT_EQ(NVRTC_SUCCESS,
              KLAP_FIND(nvrtcCreateProgram)(&program, source.c_str(), "test.cu", 1, &text, &name));
    const std::vector<const char*> options{"--gpu-architecture=compute_75", option.c_str()};
    const nvrtcResult result = KLAP_FIND(nvrtcCompileProgram)(program, 2, options.data());
    size_t size = 0;
    EXPECT_EQ(NVRTC_SUCCESS, result == NVRTC_SUCCESS ? KLAP_FIND(nvrtcGetPTXSize)(program, &size)
                                                     : KLAP_FIND(nvrtcGetProgramLogSize)(program, &size));
    std::string out(size, '?');
    EXPECT_EQ(NVRTC_SUCCESS, result == NVRTC_SUCCESS ? KLAP_FIND(nvrtcGetPTX)(program, out.data())
                                                     : KLAP_FIND(nvrtcGetProgramLog)(program, out.data()));
    EXPECT_EQ(NVRTC_SUCCESS, KLAP_FIND(nvrtcDestroyProgram)(&program));
    return out;
  }

  [[nodiscard]] size_t kept() const {
    if (!std::filesystem::exists(folder_)) return 0;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
  void* library_ = nullptr;
};

TEST_F(NvrtcOnce, GivesTheSameAgain) {
  const std::string first = compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n");
  EXPECT_THAT(first, testing::HasSubstr("42"));
  EXPECT_EQ(1U, kept());
  EXPECT_EQ(first, compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n"));
  EXPECT_EQ(1U, kept());
}

// What is in the file is what is given: it is not compiled again.
TEST_F(NvrtcOnce, TakesItFromTheFile) {
  const std::string first = compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n");
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    std::string text = read_file(file.path());
    text.replace(text.rfind("42"), 2, "43");
    write_file(file.path(), text);
  }
  EXPECT_THAT(compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n"), testing::HasSubstr("43"));
}

TEST_F(NvrtcOnce, TellsSourcesOptionsAndHeadersApart) {
  compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n");
  EXPECT_THAT(compile(kSource, "-DKLAP_WHAT=41", "#define IT 2\n"), testing::HasSubstr("43"));
  EXPECT_THAT(compile(kSource, "-DKLAP_WHAT=40", "#define IT 4\n"), testing::HasSubstr("44"));
  EXPECT_THAT(
      compile(std::string(kSource) + "__global__ void more() {}\n", "-DKLAP_WHAT=40", "#define IT 2\n"),
      testing::HasSubstr("more"));
  EXPECT_EQ(4U, kept());
}

// A file of another request, which only hashes alike, or one that was cut off.
TEST_F(NvrtcOnce, CompilesWhereTheFileIsAnotherOnes) {
  const std::string first = compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n");
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    write_file(file.path(), "something else");
  EXPECT_EQ(first, compile(kSource, "-DKLAP_WHAT=40", "#define IT 2\n"));
}

TEST_F(NvrtcOnce, KeepsNothingThatDoesNotCompile) {
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(compile("__global__ void f() { nobody(); }", "-DKLAP_WHAT=1", ""),
                testing::HasSubstr("nobody"));
  EXPECT_EQ(0U, kept());
}

}  // namespace
}  // namespace klap::test
