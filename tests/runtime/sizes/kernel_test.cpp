// The kernel that counts the sizes of children is good for every target. Its results have tests on the
// emulator (differential/child_sizes_test.cpp).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/sizes/child_sizes.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

class SizesKernel : public testing::TestWithParam<const char*> {};

TEST_P(SizesKernel, IsAssembled) {
  const std::string file = testing::TempDir() + "count_sizes_" + GetParam() + ".ptx";
  write_file(file, count_sizes_ptx());
  const std::string command = std::string(KLAP_PTXAS " -arch=") + GetParam() + " -o " + file + ".o " + file +
                              " > " + file + ".log 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(file + ".log");
  for (const char* part : {"", ".o", ".log"}) std::filesystem::remove(file + part);
}

INSTANTIATE_TEST_SUITE_P(Targets, SizesKernel,
                         testing::Values("sm_75", "sm_80", "sm_90", "sm_100", "sm_120"));

}  // namespace
}  // namespace klap::runtime
