// Programs whose kernels do the same in a second image, and those that may not.
#include "jit/second_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace klap::jit {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr char kHeader[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
constexpr char kKernel[] = ".visible .entry k()\n{\n\tret;\n}\n";

std::optional<std::string> obstacle_in(const std::string& text) {
  return obstacle_to_second_image(program_from_ptx(kHeader + text + kKernel, "unit 0"));
}

TEST(SecondImage, IsAsGoodWhereNothingOutlivesAKernel) {
  EXPECT_EQ(std::nullopt, obstacle_in(""));
  EXPECT_EQ(std::nullopt, obstacle_in(".shared .align 4 .b8 block[16];\n"));
  EXPECT_EQ(std::nullopt, obstacle_in(".extern .shared .align 16 .b8 dynamic[];\n"));
  EXPECT_EQ(std::nullopt, obstacle_in(".global .align 1 .b8 $str[3] = {37, 100};\n")) << "printf() reads it";
}

TEST(SecondImage, HasVariablesOfItsOwn) {
  for (const char* const variable :
       {".visible .global .align 4 .u32 count;\n", ".global .align 4 .u32 count = 1;\n",
        ".visible .const .align 4 .u32 count;\n", ".extern .global .align 4 .u32 count;\n",
        ".visible .global .align 1 .b8 $str[3] = {37, 100};\n", ".global .align 1 .b8 $str[3];\n"})
    EXPECT_THAT(obstacle_in(variable), Optional(HasSubstr("unit 0 has the variable "))) << variable;
}

TEST(SecondImage, HasAddressesOfItsOwn) {
  const std::string call =
      ".func f(.param .b64 to)\n{\n\t.reg .b64 %rd;\n\tld.param.u64 %rd, [to];\n\tp: .callprototype _ ();\n"
      "\tcall %rd, (), p;\n\tret;\n}\n";
  EXPECT_THAT(obstacle_in(call), Optional(HasSubstr("calls functions by their addresses")));
}

TEST(SecondImage, IsNotJudgedWithoutPtx) {
  Program program = program_from_ptx(std::string(kHeader) + kKernel, "unit 0");
  program.units.emplace_back().name = "unit 1";
  EXPECT_THAT(obstacle_to_second_image(program), Optional(HasSubstr("unit 1 has no PTX")));
  program.units.back().is_device_runtime = true;
  EXPECT_EQ(std::nullopt, obstacle_to_second_image(program));
}

}  // namespace
}  // namespace klap::jit
