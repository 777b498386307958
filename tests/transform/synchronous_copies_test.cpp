// Asynchronous copies that are done at once: which ones, and what stands for them. Every text is assembled.
#include "transform/text/synchronous_copies.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembling.h"

namespace klap::transform {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A kernel, and a function that it calls, with these instructions.
std::string unit_with(const std::string& kernel, const std::string& function = "") {
  return fmt::format(R"(.version 8.0
.target sm_80
.address_size 64
.func called(.param .b64 p)
{{
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, 64;
{}
ret;
}}
.visible .entry child(.param .u64 p)
{{
.reg .pred %p<4>, ignored;
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.shared .align 16 .b8 staged[256];
ld.param.u64 %rd1, [p];
mov.u32 %r1, staged;
mov.u32 %r2, 7;
setp.eq.u32 %p1, %r2, 3;
setp.eq.u32 ignored, %r2, 3;
{{
.param .b64 a;
st.param.b64 [a], %rd1;
call.uni called, (a);
}}
{}
ret;
}}
)",
                     function, kernel);
}

// The text with the copies of `launched` done at once.
std::string done_at_once(const std::string& text, const analysis::KernelNames& launched = {"child"}) {
  const ptx::Module module = ptx::parse(text, "unit");
  const auto copies = analysis::find_asynchronous_copies(module, launched);
  std::string made = with_synchronous_copies(module, copies).source;
  expect_assembles(made);
  return made;
}

TEST(SynchronousCopies, AreALoadAndAStore) {
  const std::string made =
      done_at_once(unit_with("cp.async.cg.shared.global.L2::128B [%r1+16], [%rd1+-4], 16;"));
  EXPECT_THAT(made,
              HasSubstr("\tld.global.v4.b32 {%klap_a0_0, %klap_a0_1, %klap_a0_2, %klap_a0_3}, [%rd1+-4];\n"
                        "\tst.shared.v4.b32 [%r1+16], "
                        "{%klap_a0_0, %klap_a0_1, %klap_a0_2, %klap_a0_3};\n"));
  EXPECT_THAT(made, Not(HasSubstr("cp.async")));
}

TEST(SynchronousCopies, KeepThePredicate) {
  EXPECT_THAT(done_at_once(unit_with("@!%p1 cp.async.ca.shared.global [staged], [%rd1], 4;")),
              HasSubstr("\t@!%p1 ld.global.b32 %klap_a0_0, [%rd1+0];\n"
                        "\t@!%p1 st.shared.b32 [staged+0], %klap_a0_0;\n"));
}

TEST(SynchronousCopies, ClearWhatIsNotCopied) {
  const std::string made = done_at_once(unit_with("@%p1 cp.async.ca.shared.global [%r1], [%rd1], 8, 5;"));
  EXPECT_THAT(made, HasSubstr("\t@%p1 ld.global.b32 %klap_a0_0, [%rd1+0];\n"));
  EXPECT_THAT(made, HasSubstr("\t@%p1 ld.global.u8 %klap_a0_2, [%rd1+4];\n"));
  EXPECT_THAT(made, Not(HasSubstr("[%rd1+5]")));
}

TEST(SynchronousCopies, AskHowMuchIsCopied) {
  const std::string made = done_at_once(unit_with("@%p1 cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;"));
  EXPECT_THAT(
      made, HasSubstr("\tsetp.ge.and.u32 %klap_a0_whole, %r2, 16, %p1;\n\t@%klap_a0_whole ld.global.v4.b32"));
  EXPECT_THAT(made, HasSubstr("\t@%klap_a0_part ld.global.u8 %klap_a0_4, [%rd1+14];\n"));
  EXPECT_THAT(made, Not(HasSubstr("u8 %klap_a0_4, [%rd1+15]")));
}

TEST(SynchronousCopies, AreNotWaitedFor) {
  const std::string waits = "cp.async.commit_group;\ncp.async.wait_group 1;\ncp.async.wait_all;";
  EXPECT_THAT(done_at_once(unit_with(waits)), Not(HasSubstr("cp.async")));
}

TEST(SynchronousCopies, AreThoseOfCalledFunctionsToo) {
  EXPECT_THAT(done_at_once(unit_with("", "cp.async.ca.shared.global [%r1], [%rd1], 4;")),
              Not(HasSubstr("cp.async")));
}

TEST(SynchronousCopies, StayInKernelsThatNobodyLaunches) {
  const std::string unit = unit_with("cp.async.ca.shared.global [%r1], [%rd1], 4;", "cp.async.wait_all;");
  EXPECT_EQ(unit, done_at_once(unit, {}));
}

std::vector<analysis::AsynchronousCopy> found(const ptx::Module& module) {
  return analysis::find_asynchronous_copies(module, {"child"});
}

TEST(SynchronousCopies, AreNotMadeOfOtherKinds) {
  for (const char* other : {"cp.async.bulk.commit_group;", "cp.async.mbarrier.arrive.shared.b64 [%r1];",
                            "cp.async.ca.shared.global [%r1], [%rd1], 4, ignored;",
                            "cp.async.ca.shared.global [%r1], [%rd1], 4, %p1;",
                            "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 4, %rd2;",
                            "cp.async.ca.shared::cluster.global [%r1], [%rd1], 4;"}) {
    const ptx::Module module = ptx::parse(unit_with(std::string("cp.async.wait_all;\n") + other), "unit");
    EXPECT_THAT(found(module), IsEmpty()) << other;
  }
}

}  // namespace
}  // namespace klap::transform
