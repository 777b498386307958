// Which files of modules are read in full.
#include "runtime/load/module_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/file.h"

namespace klap::runtime {
namespace {

constexpr uint32_t kHopper = 90;

class ModuleFiles : public testing::Test {
 protected:
  // Gives the file these bytes.
  std::optional<std::string> read(const std::string& bytes) {
    write_file(file_, bytes);
    return read_module_file(file_.c_str(), kHopper);
  }
  void TearDown() override { std::filesystem::remove(file_); }

  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / with_process("module_files.%p");
};

TEST_F(ModuleFiles, ThatLaunchAreRead) {
  const std::string program = read_file(KLAP_WAITING_FATBIN), runtime = read_file(KLAP_CUDADEVRT);
  EXPECT_EQ(program, read(program));
  EXPECT_EQ(runtime, read(runtime)) << "an archive";
}

TEST_F(ModuleFiles, OfTextAreRead) {
  const std::string text = ".version 8.0\n.target sm_90\n";
  EXPECT_EQ(text, read(text));
  EXPECT_EQ("", read(""));
}

TEST_F(ModuleFiles, WithoutLaunchesAreNot) { EXPECT_EQ(std::nullopt, read(read_file(KLAP_QUIET_CUBIN))); }

// Whoever reads the file again is told of the damage.
TEST_F(ModuleFiles, ThatAreDamagedAreRead) {
  const std::string part = read_file(KLAP_WAITING_FATBIN).substr(0, 70);
  EXPECT_EQ(part, read(part));
}

TEST_F(ModuleFiles, ThatCannotBeReadAreNobodys) {
  EXPECT_EQ(std::nullopt, read_module_file("/no/such/file", kHopper));
  EXPECT_EQ(std::nullopt, read_module_file(testing::TempDir().c_str(), kHopper));
  EXPECT_EQ(std::nullopt, read_module_file(nullptr, kHopper));
}

}  // namespace
}  // namespace klap::runtime
