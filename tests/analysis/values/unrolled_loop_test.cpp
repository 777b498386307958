// A loop that nvcc wrote out, four rounds at a time, with one thing after another changed: then it is no
// longer one loop, or not of one kind of rounds.
#include <gtest/gtest.h>

#include "analysis/optimise/stride_loop.h"
#include "fixture.h"

namespace klap::test {
namespace {

// What nvcc makes of
//   const int step = blockDim.x * gridDim.x;
//   for (int i = index; i < b; i += step) {
//     if (s[i] > 0) a[i] = 3 * s[i] + a[i];
//   }
// with the names of the fixture's registers.
constexpr char kWrittenOut[] = R"(
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [s]; ld.param.u32 %r13, [b];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
mov.u32 %r1, %ntid.x; mov.u32 %r14, %ctaid.x; mov.u32 %r15, %tid.x;
mad.lo.s32 %r40, %r14, %r1, %r15;
setp.ge.s32 %p1, %r40, %r13;
@%p1 bra END;
mov.u32 %r16, %nctaid.x; mul.lo.s32 %r3, %r16, %r1;
not.b32 %r17, %r40; add.s32 %r18, %r17, %r13; div.u32 %r4, %r18, %r3;
add.s32 %r19, %r4, 1; and.b32 %r39, %r19, 3;
setp.eq.s32 %p2, %r39, 0;
@%p2 bra FEW;
mul.wide.s32 %rd13, %r40, 4; add.s64 %rd24, %rd1, %rd13;
mul.wide.s32 %rd4, %r3, 4; add.s64 %rd23, %rd2, %rd13;
SINGLE:
ld.global.u32 %r20, [%rd23];
setp.lt.s32 %p3, %r20, 1;
@%p3 bra STEP;
ld.global.u32 %r21, [%rd24]; mad.lo.s32 %r22, %r20, 3, %r21; st.global.u32 [%rd24], %r22;
STEP:
add.s32 %r40, %r40, %r3; add.s64 %rd24, %rd24, %rd4; add.s64 %rd23, %rd23, %rd4;
add.s32 %r39, %r39, -1;
setp.ne.s32 %p4, %r39, 0;
@%p4 bra SINGLE;
FEW:
setp.lt.u32 %p5, %r4, 3;
@%p5 bra END;
mul.wide.s32 %rd10, %r3, 4;
MAIN:
mul.wide.s32 %rd14, %r40, 4; add.s64 %rd15, %rd2, %rd14; add.s64 %rd16, %rd1, %rd14;
ld.global.u32 %r23, [%rd15];
setp.lt.s32 %p6, %r23, 1;
@%p6 bra SECOND;
ld.global.u32 %r24, [%rd16]; mad.lo.s32 %r25, %r23, 3, %r24; st.global.u32 [%rd16], %r25;
SECOND:
add.s32 %r10, %r40, %r3; add.s64 %rd17, %rd15, %rd10; add.s64 %rd18, %rd16, %rd10;
ld.global.u32 %r26, [%rd17];
setp.lt.s32 %p7, %r26, 1;
@%p7 bra THIRD;
ld.global.u32 %r27, [%rd18]; mad.lo.s32 %r28, %r26, 3, %r27; st.global.u32 [%rd18], %r28;
THIRD:
add.s32 %r11, %r10, %r3; mul.wide.s32 %rd19, %r11, 4; add.s64 %rd20, %rd2, %rd19; add.s64 %rd21, %rd1, %rd19;
ld.global.u32 %r29, [%rd20];
setp.lt.s32 %p8, %r29, 1;
@%p8 bra FOURTH;
ld.global.u32 %r30, [%rd21]; mad.lo.s32 %r31, %r29, 3, %r30; st.global.u32 [%rd21], %r31;
FOURTH:
add.s32 %r12, %r11, %r3; add.s64 %rd22, %rd20, %rd10; add.s64 %rd25, %rd21, %rd10;
ld.global.u32 %r32, [%rd22];
setp.lt.s32 %p9, %r32, 1;
@%p9 bra LAST;
ld.global.u32 %r33, [%rd25]; mad.lo.s32 %r34, %r32, 3, %r33; st.global.u32 [%rd25], %r34;
LAST:
add.s32 %r40, %r12, %r3;
setp.lt.s32 %p10, %r40, %r13;
@%p10 bra MAIN;
END:
ret;
)";

std::string rounds_of(const std::string& body) {
  const Kernel kernel(module_with(body));
  const analysis::Moldable moldable =
      analysis::moldable(kernel.flow, kernel.values.registers, kernel.values.reaching, kernel.symbolic);
  return to_string(analysis::find_stride_loop(kernel.values, moldable));
}

std::string changed(const std::string& from, const std::string& to) {
  std::string body = kWrittenOut;
  const size_t at = body.find(from);
  EXPECT_NE(std::string::npos, at) << from;
  EXPECT_EQ(std::string::npos, body.find(from, at + 1)) << "twice: " << from;
  return rounds_of(body.replace(at, from.size(), to));
}

const std::string kOne = "yes: p[0:8]+0+i*4, 4 bytes written; p[16:8]+0+i*4, 4 bytes read";
const std::string kSeveral = "no: it has several loops";

TEST(WrittenOut, IsOneLoop) {
  EXPECT_EQ(kOne, rounds_of(kWrittenOut));
  EXPECT_EQ(kOne,
            changed("mul.wide.s32 %rd19, %r11, 4; add.s64 %rd20, %rd2, %rd19; add.s64 %rd21, %rd1, %rd19;",
                    "add.s64 %rd20, %rd17, %rd10; add.s64 %rd21, %rd18, %rd10;"))
      << "however addresses are computed";
}

struct Change {
  const char *from, *to;
};

class Changed : public testing::TestWithParam<Change> {};

TEST_P(Changed, IsNoOneLoop) {
  const std::string found = changed(GetParam().from, GetParam().to);
  EXPECT_TRUE(found == kSeveral || found == "no: no such loop") << found;
}

INSTANTIATE_TEST_SUITE_P(
    HowManyRounds, Changed,
    testing::Values(Change{"and.b32 %r39, %r19, 3;", "and.b32 %r39, %r19, 1;"},
                    Change{"and.b32 %r39, %r19, 3;", "and.b32 %r39, %r19, 7;"},
                    Change{"and.b32 %r39, %r19, 3;", "and.b32 %r39, %r4, 3;"},
                    Change{"not.b32 %r17, %r40;", "neg.s32 %r17, %r40;"},
                    Change{"div.u32 %r4, %r18, %r3;", "div.u32 %r4, %r18, %r13;"},
                    Change{"div.u32 %r4, %r18, %r3;", "div.s32 %r4, %r18, %r3;"},
                    Change{"setp.eq.s32 %p2, %r39, 0;", "setp.ne.s32 %p2, %r39, 0;"},
                    Change{"setp.eq.s32 %p2, %r39, 0;", "setp.eq.s32 %p2, %r39, 1;"},
                    Change{"@%p2 bra FEW;", "@!%p2 bra FEW;"}, Change{"@%p2 bra FEW;", "@%p2 bra END;"},
                    Change{"add.s32 %r39, %r39, -1;", "add.s32 %r39, %r39, -2;"},
                    Change{"add.s32 %r39, %r39, -1;", "@%p3 add.s32 %r39, %r39, -1;"},
                    Change{"setp.ne.s32 %p4, %r39, 0;", "setp.ne.s32 %p4, %r39, 1;"},
                    Change{"setp.ne.s32 %p4, %r39, 0;", "setp.gt.s32 %p4, %r39, 0;"},
                    Change{"setp.lt.u32 %p5, %r4, 3;", "setp.lt.u32 %p5, %r4, 4;"},
                    Change{"setp.lt.u32 %p5, %r4, 3;", "setp.lt.s32 %p5, %r4, 3;"},
                    Change{"setp.lt.u32 %p5, %r4, 3;", "setp.lt.u32 %p5, %r19, 3;"},
                    Change{"setp.lt.s32 %p10, %r40, %r13;", "setp.le.s32 %p10, %r40, %r13;"},
                    Change{"setp.lt.s32 %p10, %r40, %r13;", "setp.lt.s32 %p10, %r12, %r13;"},
                    Change{"@%p10 bra MAIN;", "@!%p10 bra MAIN;"},
                    Change{"add.s32 %r40, %r12, %r3;", "add.s32 %r40, %r11, %r3;"},
                    Change{"add.s32 %r40, %r40, %r3; add.s64 %rd24", "add.s64 %rd24"},
                    Change{"add.s32 %r40, %r40, %r3; add.s64 %rd24",
                           "add.s32 %r40, %r40, %r3; add.s32 %r40, %r40, %r3; add.s64 %rd24"},
                    Change{"FEW:", "FEW: mad.lo.s32 %r40, %r14, %r1, %r15;"},
                    Change{"FEW:", "FEW: @%p3 bra ON; mad.lo.s32 %r40, %r14, %r1, %r15; ON:"},
                    Change{"@%p2 bra FEW;", "@%p2 bra FEW; mad.lo.s32 %r40, %r14, %r1, %r13;"},
                    Change{"MAIN:", "add.s32 %r40, %r40, %r3; MAIN:"}));

INSTANTIATE_TEST_SUITE_P(
    WhatRoundsDo, Changed,
    testing::Values(Change{"mad.lo.s32 %r28, %r26, 3, %r27;", "mad.lo.s32 %r28, %r26, 5, %r27;"},
                    Change{"mad.lo.s32 %r28, %r26, 3, %r27;", "mad.lo.s32 %r28, %r27, 3, %r26;"},
                    Change{"mad.lo.s32 %r28, %r26, 3, %r27;", "mad.lo.s32 %r28, %r23, 3, %r27;"},
                    Change{"mad.lo.s32 %r28, %r26, 3, %r27;", "mad.lo.s32 %r28, %r26, 3, %r3;"},
                    Change{"st.global.u32 [%rd18], %r28;", "st.global.u32 [%rd18+4], %r28;"},
                    Change{"st.global.u32 [%rd18], %r28;", "st.global.u32 [%rd16], %r28;"},
                    Change{"st.global.u32 [%rd18], %r28;", "st.global.u64 [%rd18], %rd18;"},
                    Change{"st.global.u32 [%rd18], %r28;", "red.global.add.u32 [%rd18], %r28;"},
                    Change{"st.global.u32 [%rd18], %r28;", ""},
                    Change{"st.global.u32 [%rd18], %r28;", "st.global.u32 [%rd18], %r28; membar.gl;"},
                    Change{"ld.global.u32 %r27, [%rd18];", "ld.global.u32 %r27, [%rd17];"},
                    Change{"ld.global.u32 %r27, [%rd18];", "ld.volatile.global.u32 %r27, [%rd18];"},
                    Change{"setp.lt.s32 %p7, %r26, 1;", "setp.lt.s32 %p7, %r26, 2;"},
                    Change{"setp.lt.s32 %p7, %r26, 1;", "setp.gt.s32 %p7, %r26, 1;"},
                    Change{"setp.lt.s32 %p7, %r26, 1;", "setp.lt.s32 %p7, %r23, 1;"},
                    Change{"@%p7 bra THIRD;", "@!%p7 bra THIRD;"},
                    Change{"@%p7 bra THIRD;", "@%p6 bra THIRD;"}, Change{"@%p7 bra THIRD;", "@%p7 bra LAST;"},
                    Change{"@%p7 bra THIRD;", ""},
                    Change{"add.s64 %rd22, %rd20, %rd10;", "add.s64 %rd22, %rd17, %rd10;"},
                    Change{"mul.wide.s32 %rd10, %r3, 4;", "mul.wide.s32 %rd10, %r3, 8;"},
                    Change{"mul.wide.s32 %rd10, %r3, 4;", "mul.wide.s32 %rd10, %r13, 4;"}));

// The same loop without the comparison of elements, as nvcc writes it with the rest last.
constexpr char kRestLast[] = R"(
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [s]; ld.param.u32 %r13, [b];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
mov.u32 %r1, %ntid.x; mov.u32 %r14, %ctaid.x; mov.u32 %r15, %tid.x;
mad.lo.s32 %r40, %r14, %r1, %r15;
setp.ge.s32 %p1, %r40, %r13;
@%p1 bra END;
mov.u32 %r16, %nctaid.x; mul.lo.s32 %r3, %r16, %r1;
not.b32 %r17, %r40; add.s32 %r18, %r17, %r13; div.u32 %r4, %r18, %r3;
add.s32 %r19, %r4, 1; and.b32 %r39, %r19, 1;
setp.lt.u32 %p2, %r4, 1;
@%p2 bra REST;
sub.s32 %r38, %r19, %r39; mul.wide.s32 %rd10, %r3, 4;
MAIN:
mul.wide.s32 %rd14, %r40, 4; add.s64 %rd15, %rd2, %rd14; add.s64 %rd16, %rd1, %rd14;
ld.global.u32 %r23, [%rd15]; ld.global.u32 %r24, [%rd16]; mad.lo.s32 %r25, %r23, 3, %r24; st.global.u32 [%rd16], %r25;
add.s32 %r10, %r40, %r3; add.s64 %rd17, %rd15, %rd10; add.s64 %rd18, %rd16, %rd10;
ld.global.u32 %r26, [%rd17]; ld.global.u32 %r27, [%rd18]; mad.lo.s32 %r28, %r26, 3, %r27; st.global.u32 [%rd18], %r28;
add.s32 %r40, %r10, %r3;
add.s32 %r38, %r38, -2;
setp.ne.s32 %p3, %r38, 0;
@%p3 bra MAIN;
REST:
setp.eq.s32 %p4, %r39, 0;
@%p4 bra END;
mul.wide.s32 %rd13, %r40, 4; add.s64 %rd24, %rd1, %rd13; add.s64 %rd23, %rd2, %rd13; mul.wide.s32 %rd4, %r3, 4;
SINGLE:
ld.global.u32 %r20, [%rd23]; ld.global.u32 %r21, [%rd24]; mad.lo.s32 %r22, %r20, 3, %r21; st.global.u32 [%rd24], %r22;
add.s64 %rd24, %rd24, %rd4; add.s64 %rd23, %rd23, %rd4;
add.s32 %r39, %r39, -1;
setp.ne.s32 %p5, %r39, 0;
@%p5 bra SINGLE;
END:
ret;
)";

TEST(WrittenOut, IsOneLoopWithTheRestLast) { EXPECT_EQ(kOne, rounds_of(kRestLast)); }

class ChangedRestLast : public testing::TestWithParam<Change> {};

TEST_P(ChangedRestLast, IsNoOneLoop) {
  const auto& [from, to] = GetParam();
  std::string body = kRestLast;
  const size_t at = body.find(from);
  ASSERT_NE(std::string::npos, at) << from;
  const std::string found = rounds_of(body.replace(at, std::string(from).size(), to));
  EXPECT_TRUE(found.starts_with("no: ")) << to << ": " << found;
}

INSTANTIATE_TEST_SUITE_P(
    HowManyRounds, ChangedRestLast,
    testing::Values(
        Change{"and.b32 %r39, %r19, 1;", "and.b32 %r39, %r19, 3;"},
        Change{"and.b32 %r39, %r19, 1;", "and.b32 %r39, %r4, 1;"},
        Change{"setp.lt.u32 %p2, %r4, 1;", "setp.lt.u32 %p2, %r4, 2;"},
        Change{"setp.lt.u32 %p2, %r4, 1;", "setp.lt.s32 %p2, %r4, 1;"},
        Change{"@%p2 bra REST;", "@!%p2 bra REST;"}, Change{"@%p2 bra REST;", "@%p2 bra END;"},
        Change{"sub.s32 %r38, %r19, %r39;", "sub.s32 %r38, %r4, %r39;"},
        Change{"sub.s32 %r38, %r19, %r39;", "add.s32 %r38, %r19, %r39;"},
        Change{"sub.s32 %r38, %r19, %r39;", "mov.u32 %r38, %r19;"},
        Change{"add.s32 %r38, %r38, -2;", "add.s32 %r38, %r38, -1;"},
        Change{"setp.ne.s32 %p3, %r38, 0;", "setp.gt.s32 %p3, %r38, 0;"},
        Change{"setp.ne.s32 %p3, %r38, 0;", "setp.ne.s32 %p3, %r38, 2;"},
        Change{"@%p3 bra MAIN;", "@!%p3 bra MAIN;"},
        Change{"add.s32 %r40, %r10, %r3;", "mov.u32 %r40, %r10;"}, Change{"add.s32 %r40, %r10, %r3;", ""},
        Change{"setp.eq.s32 %p4, %r39, 0;", "setp.eq.s32 %p4, %r38, 0;"},
        Change{"@%p4 bra END;", "@!%p4 bra END;"}, Change{"REST:", "REST: mad.lo.s32 %r40, %r14, %r1, %r15;"},
        Change{"REST:", "REST: @%p1 bra ON; mad.lo.s32 %r40, %r14, %r1, %r15; ON:"},
        Change{"add.s64 %rd24, %rd1, %rd13; add.s64 %rd23", "add.s64 %rd24, %rd1, %rd4; add.s64 %rd23"},
        Change{"add.s32 %r39, %r39, -1;", "add.s32 %r39, %r39, -2;"},
        Change{"setp.ne.s32 %p5, %r39, 0;", "setp.ne.s32 %p5, %r39, 1;"},
        Change{"ld.global.u32 %r27, [%rd18];", "ld.global.u32 %r27, [%rd17];"},
        Change{"mad.lo.s32 %r28, %r26, 3, %r27;", "mad.lo.s32 %r28, %r26, 5, %r27;"},
        Change{"mul.wide.s32 %rd13, %r40, 4; add.s64 %rd24, %rd1, %rd13;",
               "mul.wide.s32 %rd13, %r40, 4; mul.wide.s32 %rd5, %r15, 4; add.s64 %rd24, %rd1, %rd5;"}));

TEST(WrittenOut, HandsNothingOn) {
  EXPECT_EQ(kSeveral, changed("ld.global.u32 %r21, [%rd24]; mad.lo.s32 %r22, %r20, 3, %r21;",
                              "ld.global.u32 %r21, [%rd24]; mad.lo.s32 %r22, %r39, 3, %r21;"))
      << "the rounds left";
  EXPECT_EQ(kOne, changed("mov.u32 %r16, %nctaid.x;", "mov.u32 %r41, 0; mov.u32 %r16, %nctaid.x;"));
  EXPECT_EQ(kSeveral, changed("mad.lo.s32 %r25, %r23, 3, %r24;",
                              "mad.lo.s32 %r25, %r23, 3, %r41; add.s32 %r41, %r41, %r25;"));
}

}  // namespace
}  // namespace klap::test
