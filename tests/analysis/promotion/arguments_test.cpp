// How each link gets its arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::HasSubstr;

// What is passed for `n` (offset 16), computed by `code` into %r20.
Changes passed(const std::string& code) {
  return {{"st.u32 [%rd11+16], %r1;", code + " st.u32 [%rd11+16], %r20;"}};
}
std::string at16(const std::string& code) {
  const std::string text = chain(passed(code));
  const size_t begin = text.find("offset 16");
  return begin == std::string::npos ? text : text.substr(begin + 20, text.find('\n', begin) - begin - 20);
}

TEST(Arguments, Stepped) {
  EXPECT_EQ("stepped by 3", at16("add.s32 %r20, %r1, 3;"));
  EXPECT_EQ("stepped by -3", at16("sub.s32 %r20, %r1, 3;"));
  EXPECT_EQ("stepped by -1", at16("not.b32 %r21, %r1; neg.s32 %r22, %r21; sub.s32 %r20, %r22, 2;"));
  EXPECT_EQ("multiplied by 5", at16("mul.lo.s32 %r20, %r1, 5;"));
  EXPECT_EQ("multiplied by 8", at16("shl.b32 %r20, %r1, 3;"));
  EXPECT_EQ("multiplied by -1", at16("neg.s32 %r20, %r1;"));
  // On the path to the launch only, and through copies.
  EXPECT_EQ("unchanged", at16("ld.param.u32 %r21, [n]; mov.u32 %r20, %r21;"));
}

TEST(Arguments, SteppedPointers) {
  EXPECT_THAT(chain({{"st.u64 [%rd11+8], %rd2;", "add.s64 %rd20, %rd2, 4096; st.u64 [%rd11+8], %rd20;"}}),
              HasSubstr("offset 8, 8 bytes: stepped by 4096\n"));
}

TEST(Arguments, NarrowOnes) {
  const Changes changes = {
      {".param .u32 sum", ".param .u32 sum, .param .u8 small"},
      {"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; ld.param.u8 %rs1, [small]; add.s16 %rs2, %rs1, -1;"},
      {".reg .pred", ".reg .b16 %rs<9>; .reg .pred"},
      {"st.u32 [%rd11+24], %r7;", "st.u32 [%rd11+24], %r7; st.u8 [%rd11+28], %rs2;"}};
  EXPECT_THAT(chain(changes), HasSubstr("offset 28, 1 bytes: stepped by -1\n"));
}

TEST(Arguments, Available) {
  EXPECT_EQ("available, %r20", at16("mad.lo.s32 %r20, %r1, 2, 1;"));
  EXPECT_EQ("available, %r20", at16("mul.lo.s32 %r20, %r1, %r2;"));
  EXPECT_EQ("available, %r20", at16("mov.u32 %r20, %ntid.x;"));
  EXPECT_EQ("available, %r20", at16("shr.u32 %r21, %r1, 1; xor.b32 %r20, %r21, %r2;"));
  EXPECT_THAT(chain({{"st.u32 [%rd11+16], %r1;", "st.u32 [%rd11+16], 7;"}}),
              HasSubstr("offset 16, 4 bytes: available, 7\n"));
  // A floating-point value that is computed.
  EXPECT_EQ("available, %r20", at16("mov.b32 %f1, %r1; mul.f32 %f2, %f1, 0f3F000000; mov.b32 %r20, %f2;"));
}

TEST(Arguments, AvailableSlice) {
  const Kernel k = chain_kernel(passed("shr.u32 %r21, %r1, 1; xor.b32 %r20, %r21, %r2;"));
  const auto verdict = judge_promotion(*k.facts, false);
  ASSERT_NE(nullptr, verdict.facts);
  std::vector<std::string> slice;
  for (const ptx::Statement* s : verdict.facts->next_slice) slice.push_back(k.module.compact(s->tokens));
  EXPECT_THAT(slice, testing::ElementsAre("ld.param.u32 %r1, [n];", "ld.param.u32 %r2, [x];",
                                          "shr.u32 %r21, %r1, 1;", "xor.b32 %r20, %r21, %r2;"));
}

TEST(Arguments, Postponed) {
  EXPECT_EQ("postponed, %r20", at16("ld.global.u32 %r20, [%rd7];"));
  EXPECT_EQ("postponed, %r20", at16("ld.shared.u32 %r20, [room];"));
  // Of an argument that is.
  EXPECT_EQ("postponed, %r20", at16("add.s32 %r20, %r1, %r3;"));
  EXPECT_EQ("postponed, %r20", at16("mov.u32 %r20, %r3;"));
  // One of two.
  EXPECT_EQ("postponed, %r20", at16("mov.u32 %r20, %r1; @%p1 add.s32 %r20, %r1, 1;"));
  // Another one for each thread, clock and processor.
  EXPECT_EQ("postponed, %r20", at16("add.s32 %r20, %r2, %r4;"));
  EXPECT_EQ("postponed, %r20", at16("mov.u32 %r20, %clock;"));
  EXPECT_EQ("postponed, %r20", at16("mov.u32 %r20, %smid;"));
  // By a carry, which others leave behind.
  EXPECT_EQ("postponed, %r20", at16("add.cc.u32 %r21, %r1, %r2; addc.u32 %r20, %r1, 0;"));
}

TEST(Arguments, PostponedPointer) {
  EXPECT_THAT(chain({{"st.u64 [%rd11+8], %rd2;", "ld.global.u64 %rd20, [%rd6]; st.u64 [%rd11+8], %rd20;"}}),
              HasSubstr("offset 8, 8 bytes: postponed, %rd20\n"));
}

TEST(Arguments, Swapped) {
  EXPECT_THAT(chain({{"st.u64 [%rd11], %rd1;", "st.u64 [%rd11], %rd2;"},
                     {"st.u64 [%rd11+8], %rd2;", "st.u64 [%rd11+8], %rd1;"}}),
              testing::AllOf(HasSubstr("offset 0, 8 bytes: available, %rd2\n"),
                             HasSubstr("offset 8, 8 bytes: available, %rd1\n")));
  // With one that is postponed, both are.
  EXPECT_THAT(
      chain({{"st.u32 [%rd11+16], %r1;", "st.u32 [%rd11+16], %r3;"},
             {"st.u32 [%rd11+24], %r7;", "st.u32 [%rd11+24], %r1;"}}),
      testing::AllOf(HasSubstr("offset 16, 4 bytes: available"), HasSubstr("offset 24, 4 bytes: available")));
  EXPECT_THAT(
      chain({{"st.u32 [%rd11+16], %r1;", "st.u32 [%rd11+16], %r3;"},
             {"st.u32 [%rd11+20], %r6;", "st.u32 [%rd11+20], %r1;"}}),
      testing::AllOf(HasSubstr("offset 16, 4 bytes: postponed"), HasSubstr("offset 20, 4 bytes: postponed")));
}

// An argument that is one for all links, but is read in other pieces than it is stored, is not stepped by
// what is added to a part of it.
TEST(Arguments, OfParts) {
  EXPECT_THAT(chain({{"st.u64 [%rd11+8], %rd2;",
                      "ld.param.u32 %r30, [q]; add.s32 %r31, %r30, 1; ld.param.u32 %r32, [q+4]; "
                      "st.u32 [%rd11+8], %r31; st.u32 [%rd11+12], %r32;"}}),
              testing::StartsWith("left (argument-mismatch)"));
}

}  // namespace
}  // namespace klap::test
