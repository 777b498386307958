#include "analysis/values/moldable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::test {
namespace {

std::string moldable_of(const Kernel& kernel) {
  return to_string(
      analysis::moldable(kernel.flow, kernel.values.registers, kernel.values.reaching, kernel.symbolic));
}
std::string moldable_of(const std::string& body) { return moldable_of(Kernel(module_with(body))); }

const std::string kRegisters =
    "mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;\n"
    "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; ld.param.u32 %r4, [b];\n";
const std::string kStore =
    "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4;\n";

TEST(Moldable, OneDimensionInEveryForm) {
  const std::string guard = "setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;\n" + kStore + "END: ret;";
  const std::string expected = "yes: 1-D index, if i < p[8]";
  EXPECT_EQ(expected, moldable_of(kRegisters + "mad.lo.s32 %r10, %r2, %r1, %r3;" + guard));
  EXPECT_EQ(expected, moldable_of(kRegisters + "mad.lo.s32 %r10, %r1, %r2, %r3;" + guard));
  EXPECT_EQ(expected, moldable_of(kRegisters + "mul.lo.s32 %r9, %r2, %r1; add.s32 %r10, %r9, %r3;" + guard));
  EXPECT_EQ(expected, moldable_of(kRegisters + "mul.lo.u32 %r9, %r2, %r1; add.u32 %r10, %r3, %r9;" + guard));
}

TEST(Moldable, WideForms) {
  const std::string guard =
      "cvt.s64.s32 %rd9, %r4; setp.ge.s64 %p1, %rd10, %rd9; @%p1 ret;\n"
      "shl.b64 %rd3, %rd10, 2; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4; ret;";
  const std::string expected = "yes: 1-D index, if i < s64(p[8])";
  EXPECT_EQ(expected, moldable_of(kRegisters +
                                  "mul.wide.u32 %rd5, %r2, %r1; cvt.u64.u32 %rd6, %r3;"
                                  "add.s64 %rd10, %rd5, %rd6;" +
                                  guard));
  EXPECT_EQ(expected,
            moldable_of(kRegisters + "cvt.u64.u32 %rd6, %r3; mad.wide.u32 %rd10, %r2, %r1, %rd6;" + guard));
  EXPECT_EQ(expected, moldable_of(kRegisters +
                                  "cvt.u64.u32 %rd5, %r2; cvt.u64.u32 %rd6, %r1; cvt.u64.u32 %rd7, %r3;"
                                  "mad.lo.s64 %rd10, %rd5, %rd6, %rd7;" +
                                  guard));
  // Computed in 32 bits and widened: the index modulo 2^32.
  EXPECT_EQ("yes: 1-D index, if u64(i) < s64(p[8])",
            moldable_of(kRegisters + "mad.lo.s32 %r9, %r2, %r1, %r3; cvt.u64.u32 %rd10, %r9;" + guard));
}

TEST(Moldable, FunctionsOfTheIndex) {
  EXPECT_EQ(
      "yes: 1-D index",
      moldable_of(kRegisters + "mad.lo.s32 %r9, %r2, %r1, %r3; shr.s32 %r10, %r9, 3;" + kStore + "ret;"));
  EXPECT_EQ(
      "yes: 1-D index",
      moldable_of(kRegisters + "mad.lo.s32 %r9, %r2, %r1, %r3; rem.s32 %r10, %r9, %r4;" + kStore + "ret;"));
  EXPECT_EQ(
      "yes: 1-D index, if p[12] + i < p[8]",
      moldable_of(
          kRegisters +
          "ld.param.u32 %r5, [c]; add.s32 %r6, %r2, 0; mad.lo.s32 %r9, %r6, %r1, %r5; add.s32 %r10, %r9, %r3;"
          "setp.lt.s32 %p1, %r10, %r4; @!%p1 bra END;" +
          kStore + "END: ret;"));
  // Twice the index, computed apart.
  EXPECT_EQ("yes: 1-D index",
            moldable_of(kRegisters +
                        "mul.lo.s32 %r5, %r2, %r1; shl.b32 %r6, %r5, 1; shl.b32 %r7, %r3, 1;"
                        "add.s32 %r10, %r6, %r7;" +
                        kStore + "ret;"));
  EXPECT_EQ("yes: no index", moldable_of("ld.param.u64 %rd1, [a]; red.global.add.u32 [%rd1], 1; ret;"));
}

TEST(Moldable, Guards) {
  const std::string index = kRegisters + "mad.lo.s32 %r10, %r2, %r1, %r3;\n";
  const auto guarded = [&](const std::string& compare, const std::string& branch) {
    return moldable_of(index + compare + branch + kStore + "END: ret;");
  };
  EXPECT_EQ("yes: 1-D index, if i <u p[8]", guarded("setp.ge.u32 %p1, %r10, %r4;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index, if i <= p[8]", guarded("setp.gt.s32 %p1, %r10, %r4;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index, if i < p[8]", guarded("setp.le.s32 %p1, %r4, %r10;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index, if i < p[8]", guarded("setp.gt.s32 %p1, %r4, %r10;", "@!%p1 ret;"));
  EXPECT_EQ("yes: 1-D index, if i <=u 999", guarded("setp.hi.u32 %p1, %r10, 999;", "@%p1 exit;"));
  // A lower bound, an equality, a condition on something else are no guards.
  EXPECT_EQ("yes: 1-D index", guarded("setp.lt.s32 %p1, %r10, %r4;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index", guarded("setp.ne.s32 %p1, %r10, %r4;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index", guarded("setp.gt.s32 %p1, %r4, 0;", "@%p1 bra END;"));
  // Something happens before the guard, or to the threads that fail it.
  EXPECT_EQ("yes: 1-D index",
            guarded("st.global.u32 [%rd2], %r4; setp.ge.s32 %p1, %r10, %r4;", "@%p1 bra END;"));
  EXPECT_EQ("yes: 1-D index", moldable_of(index + "setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;" + kStore +
                                          "END: st.global.u32 [%rd2], %r4; ret;"));
}

TEST(Moldable, GridStrideLoops) {
  EXPECT_EQ("yes: 1-D index, grid-stride loop, if i < p[8]", moldable_of(kRegisters + R"(
    mad.lo.s32 %r10, %r2, %r1, %r3; setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;
    mov.u32 %r5, %nctaid.x; mul.lo.s32 %r6, %r1, %r5;
    LOOP: )" + kStore + R"(
    add.s32 %r10, %r10, %r6; setp.lt.s32 %p2, %r10, %r4; @%p2 bra LOOP;
    END: ret;)"));
  // The stride is the number of threads only in both factors.
  EXPECT_THAT(moldable_of(kRegisters + R"(
    mad.lo.s32 %r10, %r2, %r1, %r3;
    LOOP: )" + kStore + R"(
    add.s32 %r10, %r10, %r1; setp.lt.s32 %p2, %r10, %r4; @%p2 bra LOOP;
    ret;)"),
              testing::HasSubstr("depends on"));
  EXPECT_EQ("yes: 1-D index, number of threads",
            moldable_of(kRegisters +
                        "mov.u32 %r5, %nctaid.x; mul.lo.s32 %r6, %r1, %r5; mad.lo.s32 %r9, %r2, %r1, %r3;"
                        "sub.s32 %r10, %r6, %r9;" +
                        kStore + "ret;"));
}

TEST(Moldable, TwoAndThreeDimensions) {
  const std::string two = kRegisters + R"(
    mov.u32 %r5, %ntid.y; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %tid.y; mov.u32 %r8, %nctaid.x;
    mad.lo.s32 %r20, %r6, %r8, %r2; mul.lo.s32 %r21, %r1, %r5; mad.lo.s32 %r22, %r7, %r1, %r3;
    mad.lo.s32 %r10, %r20, %r21, %r22;)";
  EXPECT_EQ("yes: 2-D index", moldable_of(two + kStore + "ret;"));
  EXPECT_THAT(moldable_of(two + "setp.ne.s32 %p1, %r22, 0; @%p1 bra END;" + kStore + "END: ret;"),
              testing::HasSubstr("setp.ne.s32 depends on ntid.x*tid.y + tid.x"));
  // Row and column apart.
  EXPECT_THAT(
      moldable_of(two + "mad.lo.s32 %r11, %r6, %r5, %r7; mad.lo.s32 %r10, %r11, %r4, %r3;" + kStore + "ret;"),
      testing::HasSubstr("depends on"));
  EXPECT_EQ("yes: 3-D index", moldable_of(kRegisters + R"(
    mov.u32 %r5, %ntid.y; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %tid.y; mov.u32 %r8, %nctaid.x;
    mov.u32 %r11, %ntid.z; mov.u32 %r12, %ctaid.z; mov.u32 %r13, %tid.z; mov.u32 %r14, %nctaid.y;
    mad.lo.s32 %r15, %r12, %r14, %r6; mad.lo.s32 %r16, %r15, %r8, %r2;
    mul.lo.s32 %r17, %r1, %r5; mul.lo.s32 %r18, %r17, %r11;
    mad.lo.s32 %r19, %r13, %r5, %r7; mad.lo.s32 %r20, %r19, %r1, %r3;
    mad.lo.s32 %r10, %r16, %r18, %r20;)" + kStore +
                                          "ret;"));
}

TEST(Moldable, RefusesOtherUsesOfThePosition) {
  const std::string index = kRegisters + "mad.lo.s32 %r10, %r2, %r1, %r3;\n" + kStore;
  const std::pair<const char*, const char*> cases[] = {
      {"setp.eq.s32 %p2, %r3, 0; @%p2 st.global.u32 [%rd2], %r4; ret;", "setp.eq.s32 depends on tid.x"},
      {"and.b32 %r11, %r3, 31; st.global.u32 [%rd2], %r11; ret;", "st.global.u32 depends on tid.x % 32"},
      {"st.global.u32 [%rd2], %r2; ret;", "st.global.u32 depends on ctaid.x"},
      {"st.global.u32 [%rd2], %r1; ret;", "st.global.u32 depends on ntid.x"},
      {"cvt.rn.f32.u32 %f1, %r3; ret;", "cvt.rn.f32.u32 depends on tid.x"},
      {"mov.u32 %r11, %laneid; ret;", "mov.u32 reads %laneid"},
      {"mov.u32 %r11, %warpid; ret;", "mov.u32 reads %warpid"},
      {"bar.sync 0; ret;", "bar.sync is a barrier"},
      {"bar.warp.sync -1; ret;", "bar.warp.sync is a warp operation"},
      {"vote.sync.any.pred %p2, %p1, -1; ret;", "is a warp operation"},
      {"activemask.b32 %r11; ret;", "is a warp operation"},
      {"ld.shared.u32 %r11, [%r4]; ret;", "uses shared memory"},
      {"newop.u32 %r11, %r4; ret;", "is not known to be independent of its place"},
      {"call.uni unseen; ret;", "cannot be seen"},
      // Which of the two it is depends on the thread's place in the block.
      {"mov.u32 %r12, 0; @%p3 mov.u32 %r12, %tid.x; st.global.u32 [%rd2], %r12; ret;", "depends on tid.x"},
      // Another stride than that of the index.
      {"mad.lo.s32 %r11, %r2, 64, %r3; st.global.u32 [%rd2], %r11; ret;", "depends on 64*ctaid.x + tid.x"},
      // 16-bit halves lose what a linear index needs.
      {"cvt.u16.u32 %h1, %r2; mul.wide.u16 %r11, %h1, 4; st.global.u32 [%rd2], %r11; ret;", "depends on"},
  };
  for (const auto& [body, expected] : cases) {
    EXPECT_THAT(moldable_of(index + body),
                testing::AllOf(testing::StartsWith("no: "), testing::HasSubstr(expected)))
        << body;
  }
}

// Two values that differ by thread do not cancel because they look alike: the second is of an earlier round.
TEST(Moldable, KeepsRoundsApart) {
  EXPECT_THAT(moldable_of(kRegisters + R"(
    mov.u32 %r20, 0; mov.u32 %r21, 0;
    LOOP: mul.lo.s32 %r22, %r20, %r3; sub.s32 %r10, %r22, %r21;
    )" + kStore + R"(
    mul.lo.s32 %r21, %r20, %r3; add.s32 %r20, %r20, 1; setp.lt.s32 %p1, %r20, %r4; @%p1 bra LOOP; ret;)"),
              testing::HasSubstr("depends on"));
}

TEST(Moldable, LooksIntoCalledFunctions) {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n.func f() {\n.reg .b32 %r<4>;\n";
  const std::string kernel = "ret;\n}\n.entry k() {\ncall.uni f;\nret;\n}\n";
  EXPECT_EQ("yes: no index", moldable_of(Kernel(head + "mov.u32 %r1, %clock;\n" + kernel, "k")));
  EXPECT_EQ("no: f: line 6:1: mov.u32 reads %tid",
            moldable_of(Kernel(head + "mov.u32 %r1, %tid.x;\n" + kernel, "k")));
  EXPECT_EQ("no: f: line 6:1: bar.sync is a barrier",
            moldable_of(Kernel(head + "bar.sync 0;\n" + kernel, "k")));
}

TEST(Moldable, NotByWhatOneBlockAloneSees) {
  EXPECT_EQ("no: line 15:1: red.global.cta.add.u32 is for the threads of one block",
            moldable_of(kRegisters + "red.global.cta.add.u32 [%rd2], 1; ret;"));
  EXPECT_EQ("yes: no index", moldable_of(kRegisters + "red.global.add.u32 [%rd2], 1; ret;"));
}

std::string in_one_row(const std::string& body) {
  const Kernel kernel(module_with(body));
  return to_string(analysis::moldable_in_one_row(kernel.flow, kernel.values.registers, kernel.values.reaching,
                                                 kernel.symbolic));
}

// Of a child that is launched as one block, whatever else its code asks for.
TEST(Moldable, OneBlockOfOneRow) {
  const std::string guard = "setp.ge.s32 %p1, %r10, %r4; @%p1 bra END;\n" + kStore + "END: ret;";
  const std::string thread = kRegisters + "mov.u32 %r10, %r3;" + guard;
  EXPECT_EQ("no: line 15:19: setp.ge.s32 depends on tid.x", moldable_of(thread));
  EXPECT_EQ("yes: 1-D index, if i < p[8]", in_one_row(thread));
  EXPECT_EQ("yes: 1-D index, if i < p[8]",
            in_one_row(kRegisters + "mad.lo.s32 %r10, %r2, %r1, %r3;" + guard));
  EXPECT_EQ("yes: 1-D index, if i < p[8]",
            in_one_row(kRegisters + "mov.u32 %r5, %tid.y; mad.lo.s32 %r10, %r5, %r1, %r3;" + guard));
  EXPECT_EQ("yes: 1-D index, if i < p[8]", in_one_row(kRegisters + "add.s32 %r10, %r2, %r3;" + guard))
      << "its block is the first one";
  EXPECT_EQ("yes: 1-D index, number of threads",
            in_one_row(kRegisters + "add.s32 %r10, %r1, %r3;" + kStore + "ret;"));
  EXPECT_EQ("no: line 15:20: bar.sync is a barrier",
            in_one_row(kRegisters + "mov.u32 %r10, %r3; bar.sync 0;" + guard));
}

}  // namespace
}  // namespace klap::test
