// Loops that copy an argument are told from other loops, and written out with every element in its place.
#include "analysis/inline/copy_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "ptx/tree.h"

namespace klap::analysis {
namespace {

// As nvcc has it, with what may differ in lines of its own.
constexpr char kKernel[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 4 .b8 p[160], .param .u64 out)
{
.reg .pred %p<4>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
mov.b64 %rd9, p;
{
.param .b64 result;
call.uni (result), get_buffer, ();
ld.param.b64 %rd1, [result+0];
}
mov.u32 %r8, 0;
mov.u64 %rd10, %rd1;
$L:
ld.param.u32 %r6, [%rd9];
st.u32 [%rd10], %r6;
add.s64 %rd10, %rd10, 4;
add.s64 %rd9, %rd9, 4;
add.s32 %r8, %r8, 1;
setp.lt.u32 %p3, %r8, 40;
@%p3 bra $L;
st.u32 [%rd1+160], %r7;
ret;
}
)";
constexpr char kDeclared[] = ".extern .func (.param .b64 result) get_buffer();\n";

std::vector<CopyLoop> loops_in(const std::string& text) {
  static std::vector<ptx::Module> modules;  // the loops point into them
  modules.reserve(100);
  modules.push_back(ptx::parse(replaced(text, ".visible", std::string(kDeclared) + ".visible"), "test"));
  return find_copy_loops(modules.back(), *modules.back().find_function("k"));
}

TEST(CopyLoops, SayHowOftenAndFromWhereToWhere) {
  const auto found = loops_in(kKernel);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(40u, found[0].times);
  EXPECT_EQ("p", found[0].from.base) << "by its name";
  EXPECT_EQ("%rd1", found[0].to.base);
  EXPECT_EQ(4, found[0].from.step);
  EXPECT_EQ(4, found[0].to.step);
  EXPECT_EQ(32u, found[0].register_bits);
  EXPECT_EQ(2u, found[0].beginnings.size());
}

TEST(CopyLoops, MayReadOtherMemoryAndBePadded) {
  std::string text = replaced(kKernel, "mov.b64 %rd9, p;", "ld.param.u64 %rd9, [out];");
  text = replaced(text, "ld.param.u32 %r6, [%rd9]", "ld.global.v2.u32 {%r6, %r5}, [%rd9+16]");
  text = replaced(text, "st.u32 [%rd10], %r6", "st.v2.u32 [%rd10+8], {%r6, %r5}");
  text = replaced(text, "%rd10, %rd10, 4", "%rd10, %rd10, 24");
  const auto found = loops_in(text);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("%rd9", found[0].from.base);
  EXPECT_EQ(16, found[0].from.offset);
  EXPECT_EQ(8, found[0].to.offset);
  EXPECT_EQ(24, found[0].to.step);
  EXPECT_EQ(1u, found[0].beginnings.size());
}

TEST(CopyLoops, AreNoOtherLoops) {
  struct {
    const char* what;
    const char* with;
    const char* why;
  } const changes[] = {
      {"setp.lt.u32 %p3, %r8, 40", "setp.lt.u32 %p3, %r8, %r7", "as often as a register says"},
      {"setp.lt.u32 %p3, %r8, 40", "setp.lt.u32 %p3|%p2, %r8, 40", "a second result"},
      {"setp.lt.u32 %p3, %r8, 40", "setp.le.u32 %p3, %r8, 40", "another comparison"},
      {"setp.lt.u32 %p3, %r8, 40", "setp.lt.u32 %p3, %r8, 5000", "more than any argument has"},
      {"setp.lt.u32 %p3, %r8, 40", "setp.lt.u32 %p3, %r7, 40", "another count"},
      {"mov.u32 %r8, 0", "mov.u32 %r8, 1", "another beginning"},
      {"mov.u32 %r8, 0", "mov.u32 %r8, %r7", "an unknown beginning"},
      {"add.s32 %r8, %r8, 1", "add.s32 %r8, %r8, 2", "another step"},
      {"add.s64 %rd9, %rd9, 4", "add.s64 %rd9, %rd9, %rd2", "an unknown step"},
      {"add.s64 %rd9, %rd9, 4", "add.s64 %rd9, %rd2, 4", "no step"},
      {"st.u32 [%rd10], %r6", "st.u32 [%rd10], %r7", "something else stored"},
      {"st.u32 [%rd10], %r6", "st.volatile.u32 [%rd10], %r6", "a store that others watch"},
      {"st.u32 [%rd10], %r6", "st.local.u32 [%rd10], %r6", "no buffer"},
      {"ld.param.u32 %r6", "ld.volatile.u32 %r6", "memory that others change"},
      {"st.u32 [%rd10], %r6;", "@%p1 st.u32 [%rd10], %r6;", "some elements only"},
      {"@%p3 bra $L", "@!%p3 bra $L", "the other way round"},
      {"@%p3 bra $L", "@%p2 bra $L", "another condition"},
      {"ld.param.b64 %rd1, [result+0]", "mov.b64 %rd1, 4096", "what it fills is no call's result"},
      {"[%rd1+160], %r7", "[%rd1+160], %r8", "the count is needed afterwards"},
      {"[%rd1+160], %r7", "[%rd1+160], %r6", "the last element is needed afterwards"},
      {"st.u32 [%rd1+160], %r7", "st.u64 [%rd1+160], %rd9", "the address is needed afterwards"},
      {"mov.u64 %rd10, %rd1;", "mov.u64 %rd10, %rd1;\n@%p1 bra $L;\nmov.u32 %r2, 0;", "another way in"},
      {"mov.u64 %rd10, %rd1;", "mov.u64 %rd10, %rd1;\nadd.s64 %rd10, %rd10, 8;", "begun twice"},
      {"mov.u64 %rd10, %rd1;", "@%p1 mov.u64 %rd10, %rd1;", "begun perhaps"},
      {"st.u32 [%rd1+160], %r7;", "@%p1 bra $again;", "come back to without another beginning"},
  };
  for (const auto& [what, with, why] : changes) {
    std::string text = replaced(kKernel, what, with);
    if (text.find("$again;") != std::string::npos)
      text = replaced(text, "{\n.param .b64", "$again:\n{\n.param .b64");
    EXPECT_EQ(0u, loops_in(text).size()) << why;
  }
}

// What is needed before the loop may stay; a loop around it must begin everything anew.
TEST(CopyLoops, MayStandInALoop) {
  std::string text = replaced(kKernel, "mov.b64 %rd9, p;\n{", "{");
  text = replaced(text, "mov.u64 %rd10, %rd1;", "mov.u64 %rd10, %rd1;\nmov.b64 %rd9, p;");
  text = replaced(text, "{\n.param .b64", "$again:\n{\n.param .b64");
  text = replaced(text, "st.u32 [%rd1+160], %r7;", "@%p1 bra $again;");
  EXPECT_EQ(1u, loops_in(text).size());
  EXPECT_EQ(1u,
            loops_in(replaced(kKernel, "mov.u32 %r8, 0;", "st.u64 [%rd2], %rd9;\nmov.u32 %r8, 0;")).size());
}

// This is how nvcc copies a structure in local memory.
std::string indexed() {
  std::string text = kKernel;
  const size_t begin = text.find("mov.u64 %rd10, %rd1;"), end = text.find("add.s32 %r8");
  return text.replace(begin, end - begin, R"($L:
mul.wide.s32 %rd3, %r8, 8;
add.s64 %rd4, %rd9, %rd3;
ld.local.v2.u32 {%r6, %r5}, [%rd4+16];
add.s64 %rd5, %rd1, %rd3;
st.v2.u32 [%rd5+8], {%r6, %r5};
)");
}

TEST(CopyLoops, MayComputeTheirPlacesFromTheCount) {
  const auto found = loops_in(indexed());
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(40u, found[0].times);
  EXPECT_EQ("%rd9", found[0].from.base);
  EXPECT_EQ(16, found[0].from.offset);
  EXPECT_EQ(8, found[0].from.step);
  EXPECT_EQ("%rd1", found[0].to.base);
  EXPECT_EQ(8, found[0].to.offset);
  EXPECT_EQ(8, found[0].to.step);
  EXPECT_TRUE(found[0].beginnings.empty());
}

TEST(CopyLoops, WithComputedPlacesAreNoOtherLoops) {
  struct {
    const char* what;
    const char* with;
    const char* why;
  } const changes[] = {
      {"mul.wide.s32 %rd3, %r8, 8", "mul.wide.s32 %rd3, %r7, 8", "the product of something else"},
      {"mul.wide.s32 %rd3, %r8, 8", "mul.lo.s32 %rd3, %r8, 8", "a part of the product"},
      {"mul.wide.s32 %rd3, %r8, 8", "mul.wide.s32 %rd3, %r8, %r7", "elements of unknown size"},
      {"mul.wide.s32 %rd3, %r8, 8", "mul.wide.s32 %rd3, %r8, 8192", "elements that are too large"},
      {"add.s64 %rd4, %rd9, %rd3", "add.s64 %rd4, %rd9, %rd2", "another distance"},
      {"add.s64 %rd4, %rd9, %rd3", "add.s64 %rd4, %rd4, %rd3", "a place that moves"},
      {"add.s64 %rd4, %rd9, %rd3", "add.s64 %rd4, 4096, %rd3", "an address that nothing sets"},
      {"[%rd4+16]", "[%rd2+16]", "another place"},
      {"add.s64 %rd5, %rd1, %rd3", "add.s64 %rd5, %rd9, %rd3", "no buffer"},
      {"add.s32 %r8, %r8, 1", "add.s32 %r8, %r8, 2", "another step"},
      {"add.s32 %r8, %r8, 1", "add.s32 %r7, %r7, 1", "another count"},
      {"st.u32 [%rd1+160], %r7", "st.u64 [%rd1+160], %rd4", "the address is needed afterwards"},
      {"st.u32 [%rd1+160], %r7", "st.u64 [%rd1+160], %rd3", "the distance is needed afterwards"},
  };
  for (const auto& [what, with, why] : changes)
    EXPECT_EQ(0u, loops_in(replaced(indexed(), what, with)).size()) << why;
}

}  // namespace
}  // namespace klap::analysis
