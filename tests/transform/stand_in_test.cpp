// Units without their code: they assemble for every device, and keep all names.
#include "transform/runtime_calls/stand_in.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "assembling.h"

namespace klap::stand_in_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kMark[] = "__klap_mark";

std::string without_code(const std::string& text) {
  return transform::without_code(ptx::parse(text, "unit"), kMark);
}

// What cannot be assembled for today's devices as it is.
TEST(StandIn, AssemblesForDevicesWithoutWaits) {
  size_t units = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KLAP_WAITING_DIR)) {
    if (entry.path().extension() != ".ptx") continue;
    ++units;
    expect_assembles(without_code(read_file(entry.path())));
  }
  EXPECT_LE(18u, units);
}

constexpr char kUnit[] = R"(.version 8.0
.target sm_80, debug
.address_size 64
.extern .func (.param .b32 error) cudaDeviceSynchronize
()
;
.visible .global .align 4 .u32 counter = 3;
.visible .func (.param .b32 result) wait(.param .b64 address)
{
  call.uni (result), cudaDeviceSynchronize, ();
  ret;
}
.func (.param .b32 result) inner() { ret; }
.visible .entry kernel(.param .u64 p, .param .align 8 .b8 q[16]) .maxntid 128, 1, 1
{
begin:
  bar.sync 0;
  ret;
}
.section .debug_info { .b64 begin }
)";

TEST(StandIn, KeepsAllNames) {
  const std::string text = without_code(kUnit);
  expect_assembles(text);
  const ptx::Module unit = ptx::parse(text, "stand-in");
  for (const char* const name : {"wait", "inner", "kernel"}) {
    const ptx::Function* const function = unit.find_function(name);
    ASSERT_NE(nullptr, function) << name;
    EXPECT_THAT(std::string(unit.text(function->body.tokens)), AllOf(HasSubstr(kMark), HasSubstr("trap;")));
  }
  EXPECT_EQ(24u, unit.find_function("kernel")->parameter_bytes);
  EXPECT_NE(nullptr, unit.find_variable("counter"));
  EXPECT_NE(nullptr, unit.find_variable(kMark));
  EXPECT_THAT(text, AllOf(HasSubstr(".maxntid 128"), Not(HasSubstr("debug")), Not(HasSubstr("bar.sync"))));
}

}  // namespace
}  // namespace klap::stand_in_test
