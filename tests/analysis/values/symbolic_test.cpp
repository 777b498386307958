#include "analysis/values/symbolic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::test {
namespace {

using analysis::to_string;

std::string value_of(const std::string& body, const std::string& operand, uint32_t bits = 32) {
  const Kernel kernel(module_with(body));
  return to_string(kernel.symbolic.value(operand, bits));
}

TEST(Symbolic, LiteralsAndSpecialRegisters) {
  EXPECT_EQ("32", value_of("ret;", "32"));
  EXPECT_EQ("-1", value_of("ret;", "-1"));
  EXPECT_EQ("255", value_of("ret;", "0xffU"));
  EXPECT_EQ("32", value_of("ret;", "WARP_SZ"));
  EXPECT_EQ("tid.y", value_of("mov.u32 %r1, %tid.y; ret;", "%r1"));
  EXPECT_EQ("u64(nctaid.z)", value_of("mov.u32 %r1, %nctaid.z; cvt.u64.u32 %rd1, %r1; ret;", "%rd1", 64));
  EXPECT_EQ("&counter + 4", value_of("mov.u64 %rd1, counter+4; ret;", "%rd1", 64));
}

TEST(Symbolic, DirectParameterLoads) {
  EXPECT_EQ("p[0:8]", value_of("ld.param.u64 %rd1, [a]; ret;", "%rd1", 64));
  EXPECT_EQ("p[8]", value_of("ld.param.u32 %r1, [b]; ret;", "%r1"));
  EXPECT_EQ("p[24]", value_of("ld.param.u32 %r1, [s+8]; ret;", "%r1"));
  EXPECT_EQ("p[28]", value_of("ld.param.v2.u32 {%r1, %r2}, [s+8]; ret;", "%r2"));
  EXPECT_EQ("u16(p[16:1])", value_of("ld.param.u8 %h1, [s]; ret;", "%h1", 16));
  EXPECT_EQ("s32(p[16:1])", value_of("ld.param.s8 %r1, [s]; ret;", "%r1"));
  EXPECT_EQ("unknown", value_of("ret;", "%r1")) << "never written";
}

TEST(Symbolic, ParameterLoadsThroughAddresses) {
  EXPECT_EQ("p[24]",
            value_of("mov.b64 %rd1, s; add.s64 %rd2, %rd1, 4; ld.param.u32 %r1, [%rd2+4]; ret;", "%r1"));
  EXPECT_EQ("p[24]",
            value_of("mov.b64 %rd1, s; cvta.param.u64 %rd2, %rd1; ld.u32 %r1, [%rd2+8]; ret;", "%r1"));
  EXPECT_EQ("p[20]", value_of("mov.b64 %rd1, s; mov.u32 %r2, 1; mul.wide.u32 %rd2, %r2, 4;"
                              "add.s64 %rd3, %rd1, %rd2; ld.param.u32 %r1, [%rd3]; ret;",
                              "%r1"));
  // An index that is not constant: any of them.
  EXPECT_EQ("%r1", value_of("mov.b64 %rd1, s; ld.param.u32 %r2, [b]; mul.wide.u32 %rd2, %r2, 4;"
                            "add.s64 %rd3, %rd1, %rd2; ld.param.u32 %r1, [%rd3]; ret;",
                            "%r1"));
  EXPECT_EQ("%r1", value_of("ld.param.u32 %r1, [s+24]; ret;", "%r1")) << "behind the last parameter";
  EXPECT_EQ("%r1", value_of("mov.b64 %rd1, s; ld.global.u32 %r1, [%rd1]; ret;", "%r1")) << "another space";
}

TEST(Symbolic, CalledFunctionsOwnTheirParameters) {
  const std::string head =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .func f(.param .b32 x) {\n"
      ".reg .b32 %r<4>; .reg .b64 %rd<4>;\nld.param.u32 %r1, [x];\n";
  EXPECT_EQ("p[0]", to_string(Kernel(head + "ret;\n}\n").symbolic.value("%r1", 32)));
  // With its address taken, stores may change it.
  EXPECT_EQ("%r1", to_string(Kernel(head + "mov.b64 %rd1, x; ret;\n}\n").symbolic.value("%r1", 32)));
}

TEST(Symbolic, Arithmetic) {
  const std::string load = "ld.param.u32 %r1, [b]; ld.param.u32 %r2, [c]; mov.u32 %r3, %tid.x;\n";
  const std::pair<const char*, const char*> cases[] = {
      {"add.s32 %r4, %r1, 31; shr.s32 %r5, %r4, 31; shr.u32 %r6, %r5, 27; add.s32 %r7, %r4, %r6;"
       "shr.s32 %r9, %r7, 5;",
       "(p[8] + 31) / 32"},
      {"add.s32 %r4, %r1, 255; shr.u32 %r9, %r4, 8;", "(p[8] + 255) /u 256"},
      {"mad.lo.s32 %r9, %r1, %r2, %r3;", "p[8]*p[12] + tid.x"},
      {"sub.s32 %r9, %r1, %r1;", "0"},
      {"neg.s32 %r4, %r1; add.s32 %r9, %r4, %r2;", "p[12] - p[8]"},
      {"not.b32 %r9, %r1;", "-p[8] - 1"},
      {"and.b32 %r9, %r3, 31;", "tid.x % 32"},
      {"rem.s32 %r9, %r1, %r2;", "p[8] % p[12]"},
      {"div.u32 %r9, %r1, %r2;", "p[8] /u p[12]"},
      {"mul.hi.u32 %r9, %r1, 5;", "u32(5*u64(p[8]) / 4294967296)"},
      {"shl.b32 %r9, %r1, 3;", "8*p[8]"},
      {"shl.b32 %r9, 1, %r1;", "1 << p[8]"},
      {"min.s32 %r9, %r3, 2000;", "tid.x"},
      {"max.u32 %r9, %r1, 1;", "max_u(1, p[8])"},
      {"selp.b32 %r9, %r1, %r1, %p1;", "p[8]"},
      {"mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r8, %r9}, %rd1;", "p[12]"},
      {"cvt.s64.s32 %rd1, %r1; cvt.u32.u64 %r9, %rd1;", "p[8]"},
      {"cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r9, %h1;", "u32(u16(p[8]))"},
      {"cvt.u16.u32 %h1, %r3; cvt.u32.u16 %r9, %h1;", "tid.x"},
  };
  for (const auto& [body, expected] : cases) {
    EXPECT_EQ(expected, value_of(load + body + "\nret;", "%r9")) << body;
  }
}

TEST(Symbolic, WidthAndSignOfMultiplications) {
  const std::string load = "ld.param.u32 %r1, [b]; mov.u32 %r3, %tid.x;\n";
  EXPECT_EQ("4*s64(p[8])", value_of(load + "mul.wide.s32 %rd1, %r1, 4; ret;", "%rd1", 64));
  EXPECT_EQ("4*u64(p[8])", value_of(load + "mul.wide.u32 %rd1, %r1, 4; ret;", "%rd1", 64));
  // -4 as unsigned is 2^32 - 4.
  EXPECT_EQ("4294967292*u64(p[8])", value_of(load + "mul.wide.u32 %rd1, %r1, -4; ret;", "%rd1", 64));
  EXPECT_EQ("s64(p[8] + 1)", value_of(load + "add.s32 %r2, %r1, 1; cvt.s64.s32 %rd1, %r2; ret;", "%rd1", 64));
  EXPECT_EQ("u64(tid.x) + 1",
            value_of(load + "add.s32 %r2, %r3, 1; cvt.s64.s32 %rd1, %r2; ret;", "%rd1", 64));
}

TEST(Symbolic, WhatIsNotKnownStandsForItself) {
  const std::string load =
      "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; ld.global.u32 %r1, [%rd2];\n"
      "ld.global.u32 %r2, [%rd2+4];\n";
  EXPECT_EQ("%r2 - %r1", value_of(load + "sub.s32 %r3, %r2, %r1; ret;", "%r3"));
  EXPECT_EQ("0", value_of(load + "sub.s32 %r3, %r1, %r1; ret;", "%r3"));
  EXPECT_EQ("%r3", value_of(load + "popc.b32 %r3, %r1; ret;", "%r3"));
  EXPECT_EQ("%r3", value_of(load + "add.sat.s32 %r3, %r1, 1; ret;", "%r3")) << "saturation is not addition";
  EXPECT_EQ("%r3", value_of(load + "addc.s32 %r3, %r1, 1; ret;", "%r3")) << "the carry is not known";
  EXPECT_EQ("%r3", value_of("mov.u32 %r3, %clock; ret;", "%r3")) << "changes while the thread runs";
  EXPECT_EQ("%r3", value_of("mov.u32 %r3, %smid; ret;", "%r3"));
  EXPECT_EQ("unknown", value_of(load + "madd.new.s32 %r3, %r1, 1; ret;", "%r3"))
      << "what it writes is not known";
  EXPECT_EQ("%rd3", value_of(load + "cvt.sat.u8.s32 %rd3, %r1; ret;", "%rd3", 64));
}

TEST(Symbolic, SeveralDefinitionsAreASetOrUnknown) {
  EXPECT_EQ("one of {32, p[8]}",
            value_of("ld.param.u32 %r1, [b]; @%p1 bra L; mov.u32 %r1, 32; L: ret;", "%r1"));
  EXPECT_EQ("one of {33, p[8] + 1}",
            value_of("ld.param.u32 %r1, [b]; @%p1 mov.u32 %r1, 32; add.s32 %r2, %r1, 1; ret;", "%r2"));
  EXPECT_EQ("one of {32, 64}", value_of("selp.b32 %r1, 64, 32, %p1; ret;", "%r1"));
  EXPECT_EQ("32", value_of("mov.u32 %r1, 32; @%p1 bra L; mov.u32 %r1, 32; L: ret;", "%r1"));
  EXPECT_EQ("unknown", value_of("mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; @%p1 bra L; ret;", "%r1"));
  EXPECT_EQ("unknown", value_of("mov.u32 %r1, 0; @%p1 bra L; ld.global.u32 %r1, [%rd1]; L: ret;", "%r1"));
  EXPECT_EQ("unknown", value_of("ld.global.u32 %r2, [%rd1]; @%p2 add.s32 %r1, %r2, 1; ret;", "%r1"))
      << "a predicated definition alone";
  EXPECT_EQ("unknown",
            value_of("mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; @%p2 mov.u32 %r1, 3; @%p3 mov.u32 %r1, 4;"
                     "@%p4 mov.u32 %r1, 5; ret;",
                     "%r1"))
      << "more than a few";
}

// In a loop, what is read before it is written comes from the last round: it must not cancel against the same
// symbol of this round.
TEST(Symbolic, KeepsRoundsOfALoopApart) {
  const Kernel kernel(module_with(R"(
  mov.u32 %r9, 0;
L: ld.global.u32 %r1, [%rd1];
  @%p1 bra SKIP;
  sub.s32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3;
SKIP: mov.u32 %r2, %r1;
  @%p2 bra L;
  ret;)"));
  const uint32_t sub = kernel.index_of("sub.s32");
  EXPECT_EQ("%r1 - %r2", to_string(kernel.symbolic.written(sub, kernel.register_of(sub, "%r3"))));
  EXPECT_EQ("unknown", to_string(kernel.symbolic.value("%r3", 32)));
}

TEST(Symbolic, Prints) {
  const Kernel kernel(
      module_with("ld.param.u32 %r1, [b];\nadd.s32 %r2, %r1, 1;\n@%p1 popc.b32 %r3, %r2;\nret;"));
  EXPECT_EQ(
      "line 13: %r1 = p[8]\n"
      "line 14: %r2 = p[8] + 1\n"
      "line 15: perhaps %r3 = unknown, by popc.b32\n",
      print_values(kernel.flow, kernel.values.registers, kernel.symbolic));
}

}  // namespace
}  // namespace klap::test
