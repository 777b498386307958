#include "analysis/optimise/stride_loop.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::test {
namespace {

std::string rounds_of(const Kernel& kernel) {
  const analysis::Moldable moldable =
      analysis::moldable(kernel.flow, kernel.values.registers, kernel.values.reaching, kernel.symbolic);
  EXPECT_TRUE(moldable.yes()) << moldable.reason;
  return to_string(analysis::find_stride_loop(kernel.values, moldable));
}

// `for (i = index; i < b; i += threads) body`: %rd2 is a, %r1 the block size, %r5 the threads, %r10 is i.
std::string loop(const std::string& body, const std::string& ahead = "", const std::string& end = "",
                 const std::string& guard = "setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;\n",
                 const std::string& again = "setp.lt.s32 %p2, %r10, %r4; @%p2 bra LOOP;\n") {
  return "mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;\n"
         "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; ld.param.u32 %r4, [b];\n"
         "ld.param.u64 %rd8, [s]; cvta.to.global.u64 %rd9, %rd8;\n"
         "mad.lo.s32 %r10, %r2, %r1, %r3;\n" +
         guard + "mov.u32 %r6, %nctaid.x; mul.lo.s32 %r5, %r6, %r1;\n" + ahead + "LOOP:\n" + body +
         "add.s32 %r10, %r10, %r5;\n" + again + end + "END: ret;";
}
std::string rounds_in(const std::string& body, const std::string& ahead = "", const std::string& end = "") {
  return rounds_of(Kernel(module_with(loop(body, ahead, end))));
}

// %rd4 is the address of a[i], %rd7 that of s[i].
const std::string kAddress =
    "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd2, %rd3; add.s64 %rd7, %rd9, %rd3;\n";

TEST(StrideLoop, OneArrayNeedsNoComparison) {
  EXPECT_EQ("yes", rounds_in(kAddress + "st.global.u32 [%rd4], %r4;\n"));
  EXPECT_EQ("yes", rounds_in(kAddress + "ld.global.u32 %r7, [%rd4]; add.s32 %r8, %r7, 1;\n"
                                        "st.global.u32 [%rd4], %r8;\n"));
  EXPECT_EQ("yes", rounds_in(kAddress + "ld.global.u32 %r7, [%rd4];\n")) << "nothing is written";
  EXPECT_EQ("yes", rounds_in(kAddress + "ld.global.nc.u32 %r7, [%rd7+4]; st.global.u32 [%rd4], %r7;\n"));
}

TEST(StrideLoop, TwoArraysAreCompared) {
  EXPECT_EQ("yes: p[0:8]+0+i*4, 4 bytes written; p[16:8]-4+i*4, 8 bytes read",
            rounds_in(kAddress + "ld.global.u32 %r7, [%rd7+-4]; ld.global.u32 %r8, [%rd7];\n"
                                 "add.s32 %r9, %r7, %r8; st.global.u32 [%rd4], %r9;\n"));
  EXPECT_EQ("yes: p[0:8]+0+i*4, 4 bytes written; p[16:8]+8+i*0, 8 bytes read",
            rounds_in(kAddress + "ld.global.v2.u32 {%r7, %r8}, [%rd9+8]; st.global.u32 [%rd4], %r7;\n"))
      << "the same for all rounds";
  EXPECT_EQ("yes: p[0:8]+0+i*16, 16 bytes written; p[16:8]+0+i*4, 4 bytes read",
            rounds_in("mul.wide.s32 %rd3, %r10, 16; add.s64 %rd4, %rd2, %rd3;\n"
                      "mul.wide.s32 %rd5, %r10, 4; add.s64 %rd7, %rd9, %rd5; ld.global.u32 %r7, [%rd7];\n"
                      "st.global.v2.u32 [%rd4], {%r7, %r7}; st.global.u64 [%rd4+8], %rd3;\n"));
}

// c is a start that the program adds to the index, or to the pointer.
TEST(StrideLoop, PlacesMayBeShifted) {
  const std::string ahead =
      "ld.param.s32 %rd12, [c]; shl.b64 %rd13, %rd12, 2; add.s64 %rd14, %rd2, %rd13; add.s64 %rd15, %rd9, "
      "%rd13;\n"
      "ld.param.u32 %r20, [c];\n";
  const std::string places =
      "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd14, %rd3; add.s64 %rd7, %rd15, %rd3;\n";
  EXPECT_EQ("yes", rounds_in(places + "st.global.u32 [%rd4], %r4;\n", ahead));
  EXPECT_EQ("yes: p[0:8]+0+i*4, 4 bytes written; p[16:8]+0+i*4, 4 bytes read",
            rounds_in(places + "ld.global.u32 %r7, [%rd7]; st.global.u32 [%rd4], %r7;\n", ahead))
      << "both alike";
  EXPECT_EQ(
      "no: lines 23 and 24 may access the same memory in different iterations",
      rounds_in(places + "add.s64 %rd7, %rd9, %rd3; ld.global.u32 %r7, [%rd7];\nst.global.u32 [%rd4], %r7;\n",
                ahead));
  EXPECT_EQ(
      "no: lines 23 and 24 may access the same memory in different iterations",
      rounds_in(places + "add.s64 %rd7, %rd2, %rd3; ld.global.u32 %r7, [%rd7];\nst.global.u32 [%rd4], %r7;\n",
                ahead))
      << "one pointer";
  const std::string from =
      "add.s32 %r21, %r10, %r20; mul.wide.s32 %rd3, %r21, 4; add.s64 %rd4, %rd2, %rd3;\n";
  EXPECT_EQ(
      "yes",
      rounds_in(from + "ld.global.u32 %r7, [%rd4]; add.s32 %r7, %r7, 1; st.global.u32 [%rd4], %r7;\n", ahead))
      << "each round has its own, even where the sum wraps";
  EXPECT_EQ("no: line 23 may access the same memory in different iterations",
            rounds_in(from + "ld.global.u32 %r7, [%rd4+4]; st.global.u32 [%rd4], %r7;\n", ahead));
  EXPECT_EQ(
      "no: lines 23 and 24 may access the same memory in different iterations",
      rounds_in(from + "add.s64 %rd7, %rd9, %rd3; ld.global.u32 %r7, [%rd7];\nst.global.u32 [%rd4], %r7;\n",
                ahead))
      << "where it wraps, nobody knows how far they reach";
  EXPECT_EQ("no: line 23 writes at an address that does not advance by one step per iteration",
            rounds_in("add.s32 %r21, %r10, %r10; add.s32 %r21, %r21, %r20; mul.wide.s32 %rd3, %r21, 4;\n"
                      "add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4;\n",
                      ahead))
      << "two rounds may wrap to the same";
}

TEST(StrideLoop, ReductionsMeetEachOther) {
  const std::string read = kAddress + "ld.global.u32 %r7, [%rd7];\n";
  EXPECT_EQ("yes: p[0:8]+0+i*0, 4 bytes updated; p[16:8]+0+i*4, 4 bytes read",
            rounds_in(read + "red.global.add.u32 [%rd2], %r7;\n"));
  EXPECT_EQ("yes: p[0:8]+0+i*0, 4 bytes updated; p[16:8]+0+i*4, 4 bytes read",
            rounds_in(read + "atom.global.add.u32 %r8, [%rd2], %r7;\n"))
      << "nobody reads the result";
  const std::string anywhere =
      "ld.global.nc.u32 %r7, [%rd7]; mul.wide.s32 %rd10, %r7, 4; add.s64 %rd11, %rd2, %rd10;\n";
  EXPECT_EQ("yes", rounds_in(kAddress + anywhere + "red.global.max.s32 [%rd11], %r4;\n"));
}

TEST(StrideLoop, PointersMayStep) {
  const std::string ahead =
      "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd2, %rd3; mul.wide.s32 %rd5, %r5, 4;\n";
  EXPECT_EQ("yes", rounds_in("st.global.u32 [%rd4], %r4; add.s64 %rd4, %rd4, %rd5;\n", ahead));
  EXPECT_EQ("no: line 22:1: add.s64 carries %rd4 to the next iteration",
            rounds_in("st.global.u32 [%rd4], %r4;\nadd.s64 %rd4, %rd4, %rd2;\n", ahead));
}

TEST(StrideLoop, WhatMeetsIsLeft) {
  const auto why = [](const std::string& body) {
    const std::string text = rounds_in(body);
    return text.substr(text.find(": ") == std::string::npos ? 0 : text.rfind(": ") + 2);
  };
  const std::string meets = "line 21 may access the same memory in different iterations";
  EXPECT_EQ(meets, why(kAddress + "ld.global.u32 %r7, [%rd4+4]; st.global.u32 [%rd4], %r7;\n"));
  EXPECT_EQ(meets, why(kAddress + "st.global.u64 [%rd4], %rd1;\n")) << "wider than a step";
  EXPECT_EQ(meets, why(kAddress + "st.global.u32 [%rd2], %r10;\n")) << "all to one place";
  EXPECT_EQ(meets, why(kAddress + "ld.global.u32 %r7, [%rd2]; red.global.add.u32 [%rd2], %r7;\n"));
  EXPECT_EQ(meets, why(kAddress + "red.global.add.u32 [%rd4+4], %r4; st.global.u32 [%rd4], %r4;\n"));
  const std::string anywhere =
      "ld.global.u32 %r7, [%rd4];\nmul.wide.s32 %rd5, %r7, 4;\n"
      "add.s64 %rd6, %rd2, %rd5;\n";
  EXPECT_EQ(
      "line 24 reads at an address that does not advance by one step per iteration",
      rounds_in(kAddress + anywhere + "ld.global.u32 %r8, [%rd6]; st.global.u32 [%rd7], %r8;\n").substr(4));
  EXPECT_EQ("line 24 writes at an address that does not advance by one step per iteration",
            rounds_in(kAddress + anywhere + "st.global.u32 [%rd6], %r4;\n").substr(4));
  EXPECT_EQ("line 24 writes at an address that does not advance by one step per iteration",
            rounds_in(kAddress + anywhere + "red.global.add.u32 [%rd6], %r4;\n").substr(4))
      << "what is read may be what is added to";
}

TEST(StrideLoop, WhatDependsOnTheOrderIsLeft) {
  const std::string order = " depends on the order of iterations";
  EXPECT_EQ("no: line 21:1: red.global.add.f32" + order,
            rounds_in(kAddress + "red.global.add.f32 [%rd2], 0f3F800000;\n"));
  EXPECT_EQ("no: line 21:1: red.global.inc.u32" + order,
            rounds_in(kAddress + "red.global.inc.u32 [%rd2], %r4;\n"));
  EXPECT_EQ("no: line 22 updates by another operation than line 21",
            rounds_in(kAddress + "red.global.add.u32 [%rd2], %r4;\nred.global.max.u32 [%rd2], %r4;\n"));
  const std::string not_any = " is not for any order: ";
  EXPECT_EQ("no: line 21:1: atom.global.add.u32" + not_any + "atomic",
            rounds_in(kAddress + "atom.global.add.u32 %r7, [%rd2], 1; st.global.u32 [%rd4], %r7;\n"));
  EXPECT_EQ("no: line 21:1: ld.volatile.global.u32" + not_any + "strong load",
            rounds_in(kAddress + "ld.volatile.global.u32 %r7, [%rd2];\n"));
  EXPECT_EQ("no: line 21:1: membar.gl" + not_any + "fence",
            rounds_in(kAddress + "membar.gl;\nst.global.u32 [%rd4], %r4;\n"));
}

TEST(StrideLoop, WhatStaysWithItsThreadIsLeft) {
  EXPECT_EQ("no: line 22:1: add.s32 carries %r7 to the next iteration",
            rounds_in(kAddress + "add.s32 %r7, %r7, 1; st.global.u32 [%rd4], %r7;\n", "mov.u32 %r7, 0;\n"));
  EXPECT_EQ("no: line 21:1: st.global.u32 uses the number of threads",
            rounds_in(kAddress + "st.global.u32 [%rd4], %r5;\n"));
  EXPECT_EQ("no: line 22:34: st.global.u32 uses the index of its thread's first iteration",
            rounds_in(kAddress + "mov.u32 %r20, %tid.x; mov.u32 %r21, %ctaid.x;\n"
                                 "mad.lo.s32 %r7, %r21, %r1, %r20; st.global.u32 [%rd4], %r7;\n"));
  EXPECT_NE(std::string::npos,
            rounds_in(kAddress + "st.global.f32 [%rd4], %f1;\n", "cvt.rn.f32.s32 %f1, %r10;\n")
                .find("uses %f1, which differs between threads, from ahead of the loop"));
  EXPECT_NE(std::string::npos,
            rounds_in(kAddress + "@%p3 st.global.u32 [%rd4], %r4;\n", "setp.gt.s32 %p3, %r10, 7;\n")
                .find("uses %p3, which differs between threads"));
}

TEST(StrideLoop, OtherEndsAreLeft) {
  const std::string store = kAddress + "st.global.u32 [%rd4], %r4;\n";
  EXPECT_EQ("no: more is done behind the loop", rounds_in(store, "", "st.global.u32 [%rd2], %r4;\n"));
  EXPECT_EQ("no: an iteration may end early, from line 20 on",
            rounds_in(kAddress + "ld.global.u32 %r7, [%rd4]; setp.eq.s32 %p3, %r7, 0; @%p3 bra END;\n"));
  EXPECT_EQ("no: it has several loops",
            rounds_in(store) == "yes" ? rounds_in(store + "bra SECOND; SECOND:\n", "",
                                                  "mov.u32 %r11, %r10;\nLAST: add.s32 %r11, %r11, %r5;\n"
                                                  "setp.lt.s32 %p4, %r11, %r4; @%p4 bra LAST;\n")
                                      : "");
  EXPECT_EQ("no: not every thread that passes the guard enters the loop",
            rounds_in(store, "setp.gt.s32 %p3, %r10, 5; @%p3 bra END;\n"));
  const std::string ends = "no: its iterations do not end by its guard";
  const std::string guard = "setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;\n";
  const auto again = [&](const std::string& condition) {
    return rounds_of(Kernel(module_with(loop(store, "", "", guard, condition))));
  };
  EXPECT_EQ(ends, again("setp.le.s32 %p2, %r10, %r4; @%p2 bra LOOP;\n")) << "one more";
  EXPECT_EQ(ends, again("setp.lt.u32 %p2, %r10, %r4; @%p2 bra LOOP;\n")) << "unsigned";
  EXPECT_EQ(ends, again("setp.lt.s32 %p2, %r10, 100; @%p2 bra LOOP;\n")) << "another bound";
  EXPECT_EQ("yes", again("setp.ge.s32 %p2, %r10, %r4; @!%p2 bra LOOP;\n"));
  EXPECT_EQ("yes", again("setp.gt.s32 %p2, %r4, %r10; @%p2 bra LOOP;\n"));
  EXPECT_EQ("no: no such loop",
            rounds_in(store + "mov.u32 %r20, 0;\nINNER: add.s32 %r20, %r20, 1; setp.lt.s32 %p4, %r20, %r4;\n"
                              "@%p4 bra INNER;\n"))
      << "a loop in the loop";
}

std::string rounds_in_row(const std::string& body, const std::string& directives = {}) {
  const Kernel kernel(module_with(
      "mov.u32 %r5, %ntid.x; mov.u32 %r10, %tid.x; ld.param.u64 %rd1, [a]; ld.param.u64 %rd9, [s];\n"
      "ld.param.u32 %r4, [b]; setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;\n"
      "LOOP:\n" +
          body + "add.s32 %r10, %r10, %r5; setp.lt.s32 %p2, %r10, %r4; @%p2 bra LOOP;\nEND: ret;",
      directives));
  const analysis::Moldable moldable = analysis::moldable_in_one_row(kernel.flow, kernel.values.registers,
                                                                    kernel.values.reaching, kernel.symbolic);
  return to_string(analysis::find_stride_loop(kernel.values, moldable));
}

TEST(StrideLoop, OneBlockOfOneRow) {
  const std::string address =
      "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd7, %rd9, %rd3;\n";
  EXPECT_EQ("yes: p[0:8]+0+i*4, 4 bytes written; p[16:8]+0+i*4, 4 bytes read",
            rounds_in_row(address + "ld.global.u32 %r7, [%rd7]; st.global.u32 [%rd4], %r7;\n"));
  EXPECT_EQ("no: line 17:1: st.global.u32 uses the number of threads",
            rounds_in_row(address + "st.global.u32 [%rd4], %r5;\n"));
}

}  // namespace
}  // namespace klap::test
