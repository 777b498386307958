// Chains whose arguments are combinations of one value of each link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What is passed for `sum`, computed by `code` into %r7.
Changes sum(const std::string& code) { return {{"add.s32 %r7, %r3, %r5;", code}}; }

constexpr const char* kLooksBack = "\n  look-back\n";

TEST(LookBack, Operations) {
  for (const char* operation : {"min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32"}) {
    EXPECT_THAT(
        chain(sum(std::string(operation) + " %r7, %r5, %r3;")),
        AllOf(HasSubstr(std::string("carried by ") + operation + " of %r5\n"), HasSubstr(kLooksBack)));
  }
  EXPECT_THAT(chain(sum("add.u32 %r7, %r3, %r5;")), HasSubstr("carried by add.s32 of %r5\n"));
  for (const char* operation : {"min.f32", "max.f32"}) {
    EXPECT_THAT(chain(sum("mov.b32 %f1, %r3; mov.b32 %f2, %r5; " + std::string(operation) +
                          " %f3, %f1, %f2; mov.b32 %r7, %f3;")),
                HasSubstr(std::string("carried by ") + operation + " of %r5\n"));
    // Of a register for integers that is not.
    EXPECT_THAT(chain({{".reg .pred", ".reg .s32 %i<9>; .reg .pred"},
                       {"bar.sync 0;", "bar.sync 0; mov.b32 %i1, %r5;"},
                       sum("mov.b32 %f1, %r3; mov.b32 %f2, %i1; " + std::string(operation) +
                           " %f3, %f1, %f2; mov.b32 %r7, %f3;")[0]}),
                HasSubstr(std::string("carried by ") + operation + " of %r5\n"));
    EXPECT_THAT(
        chain({{"add.s32 %r7, %r3, %r5;",
                "ld.param.f32 %f1, [sum]; " + std::string(operation) + " %f3, %f1, %f2;"},
               {"st.u32 [%rd11+24], %r7;", "st.f32 [%rd11+24], %f3;"},
               {"bar.sync 0;", "bar.sync 0; mov.b32 %f2, %r5;"}}),
        AllOf(HasSubstr(std::string("carried by ") + operation + " of %f2\n"), HasSubstr(kLooksBack)));
  }
}

TEST(LookBack, OfSixtyFourBits) {
  EXPECT_THAT(chain({{".param .u32 sum", ".param .u32 unused, .param .u64 sum"},
                     {"ld.param.u32 %r3, [sum];", "ld.param.u64 %rd20, [sum]; cvt.u32.u64 %r3, %rd20;"},
                     {"bar.sync 0;", "bar.sync 0; cvt.u64.u32 %rd21, %r5;"},
                     {"add.s32 %r7, %r3, %r5;", "add.s64 %rd22, %rd20, %rd21;"},
                     {"st.u32 [%rd11+24], %r7;", "st.u64 [%rd11+32], %rd22;"}}),
              AllOf(HasSubstr("offset 32, 8 bytes: postponed, carried by add.s64 of %rd21\n"),
                    HasSubstr(kLooksBack)));
}

TEST(LookBack, OfSeveralValues) {
  EXPECT_THAT(chain(sum("add.s32 %r30, %r5, %r4; add.s32 %r31, %r3, %r30; add.s32 %r7, %r31, 7;")),
              AllOf(HasSubstr("carried by add.s32 of %r5, %r4, 7\n"), HasSubstr(kLooksBack)));
  // Through a copy.
  EXPECT_THAT(chain(sum("mov.u32 %r30, %r3; add.s32 %r7, %r5, %r30;")),
              HasSubstr("carried by add.s32 of %r5\n"));
  // A value of two ways, both in front of the boundary.
  EXPECT_THAT(chain({{"bar.sync 0;", "mov.u32 %r30, 0; @%p9 mov.u32 %r30, 1; bar.sync 0;"},
                     sum("add.s32 %r7, %r3, %r30;")[0]}),
              HasSubstr("carried by add.s32 of %r30\n"));
}

TEST(LookBack, Pairs) {
  EXPECT_THAT(
      chain({{"st.u32 [%rd11+16], %r1;",
              "ld.param.u32 %r30, [n]; max.s32 %r31, %r30, %r4; st.u32 [%rd11+16], %r31;"},
             {"add.s32 %r7, %r3, %r5;", "add.s32 %r7, %r3, %r5;"},
             {"setp.ge.s32 %p2, %r6, %r1;", "setp.ge.s32 %p2, %r6, 100;"}}),
      AllOf(HasSubstr("offset 16, 4 bytes: postponed, carried by max.s32 of %r4\n"),
            HasSubstr("offset 24, 4 bytes: postponed, carried by add.s32 of %r5\n"), HasSubstr(kLooksBack)));
}

// Only the order is kept then.
TEST(LookBack, OfNothing) {
  EXPECT_THAT(chain({{"st.u32 [%rd11+24], %r7;", "st.u32 [%rd11+24], %r3;"}}),
              AllOf(Not(HasSubstr("postponed")), HasSubstr(kLooksBack)));
}

std::string why_not(const Changes& changes) {
  const std::string text = chain(changes);
  const size_t at = text.find("  no look-back: ");
  return at == std::string::npos ? text : text.substr(at + 16, text.size() - at - 17);
}

TEST(LookBack, OtherOperations) {
  EXPECT_THAT(why_not(sum("mul.lo.s32 %r7, %r3, %r5;")),
              HasSubstr("the argument at offset 24: mul.lo.s32 (line 50:1) is none of the operations"));
  EXPECT_THAT(why_not(sum("sub.s32 %r7, %r3, %r5;")),
              HasSubstr("sub.s32 (line 50:1) is none of the operations"));
  EXPECT_THAT(why_not(sum("add.sat.s32 %r7, %r3, %r5;")), HasSubstr("add.sat.s32 (line 50:1) is none"));
  EXPECT_THAT(why_not(sum("@%p9 add.s32 %r7, %r3, %r5;")),
              HasSubstr("what is passed on is one of several values"));
  EXPECT_THAT(why_not(sum("mov.b32 %f1, %r3; add.f32 %f2, %f1, %f3; mov.b32 %r7, %f2;")),
              HasSubstr("add.f32 (line 50:"));
  EXPECT_THAT(why_not(sum("mov.b32 %f1, %r3; max.NaN.f32 %f2, %f1, %f3; mov.b32 %r7, %f2;")),
              HasSubstr("max.NaN.f32 (line 50:"));
  EXPECT_THAT(why_not(sum("mov.b32 %f1, %r3; max.ftz.f32 %f2, %f1, %f3; mov.b32 %r7, %f2;")),
              HasSubstr("max.ftz.f32 (line 50:"));
  // Two operations.
  EXPECT_THAT(why_not(sum("add.s32 %r30, %r3, %r5; max.s32 %r7, %r30, %r4;")),
              HasSubstr("%r30 is not known at the boundary"));
}

TEST(LookBack, TheArgumentOnceAndAlone) {
  EXPECT_EQ("the argument at offset 24: what is passed on is not combined with what came",
            why_not(sum("add.s32 %r7, %r5, %r4;")));
  EXPECT_EQ("the argument at offset 24: what came is used twice",
            why_not(sum("add.s32 %r30, %r3, %r5; add.s32 %r7, %r30, %r3;")));
  // A value that needs it as well.
  EXPECT_THAT(
      why_not({{"bar.sync 0;", "bar.sync 0; xor.b32 %r30, %r3, %r5;"}, sum("add.s32 %r7, %r3, %r30;")[0]}),
      HasSubstr("%r30 is not known at the boundary"));
  // Another one's place.
  EXPECT_THAT(why_not({{"st.u32 [%rd11+20], %r6;", "st.u32 [%rd11+20], %r7;"},
                       {"st.u32 [%rd11+24], %r7;", "st.u32 [%rd11+24], %r3;"},
                       {"setp.ge.s32 %p2, %r6, %r1;", "setp.ge.s32 %p2, %r1, 5;"},
                       {"st.u32 [%rd11+16], %r1;", "add.s32 %r33, %r1, 1; st.u32 [%rd11+16], %r33;"}}),
              HasSubstr("the argument at offset 20: "));
}

TEST(LookBack, ValuesKnownAtTheBoundary) {
  EXPECT_THAT(why_not(sum("ld.shared.u32 %r30, [room]; add.s32 %r7, %r3, %r30;")),
              HasSubstr("%r30 is not known at the boundary"));
}

TEST(LookBack, OnlyByTheFirstThread) {
  EXPECT_EQ("another thread than the block's first one launches",
            why_not({{"setp.ne.s32 %p1, %r4, 0;", "setp.ne.s32 %p1, %r4, 63;"}}));
}

TEST(LookBack, OnlyWhereLinksAreCounted) {
  EXPECT_EQ("the condition is not counted",
            why_not({{"setp.ge.s32 %p2, %r6, %r1;", "setp.ge.s32 %p2, %r5, %r1;"}}));
  EXPECT_EQ("there is no overlap",
            why_not({{"mov.u64 %rd10, k;", "st.global.u32 [%rd7], %r5; mov.u64 %rd10, k;"}}));
}

TEST(LookBack, NothingBetweenBoundaryAndLaunch) {
  const auto between = [](const std::string& code) {
    return Changes{{"mov.u64 %rd10, k;", code + " mov.u64 %rd10, k;"}};
  };
  EXPECT_EQ("ld.global.u32 (line 30:1) stands between the boundary and the launch",
            why_not(between("ld.global.u32 %r30, [%rd7];")));
  EXPECT_THAT(why_not(between("red.global.add.u32 [%rd4], 1;")), HasSubstr("there is no overlap"));
  EXPECT_EQ("membar.gl (line 30:1) stands between the boundary and the launch",
            why_not(between("membar.gl;")));
  EXPECT_THAT(chain(between("st.shared.u32 [room], %r5;")), HasSubstr(kLooksBack));
  // By another thread, with a barrier between; and without.
  const std::string mark = "{ .reg .pred __klap_overlap$boundary; }";
  const auto beside = [&](const std::string& then) {
    return Changes{
        {"add.s32 %r6, %r2, 1;", mark +
                                     " add.s32 %r6, %r2, 1; setp.ne.s32 %p9, %r4, 0; @!%p9 bra FIRST; "
                                     "st.global.u32 [%rd7], %r5; FIRST: " +
                                     then}};
  };
  EXPECT_THAT(
      why_not(
          {{"or.pred %p3, %p1, %p2;\n@%p3 bra DONE;", mark + " @%p1 bra OTHERS; bar.sync 0; @%p2 bra DONE;"},
           {"DONE:", "bra DONE; OTHERS: st.global.u32 [%rd7], %r5; bar.sync 0; DONE:"}}),
      testing::MatchesRegex("st.global.u32 .line [0-9]+:[0-9]+. stands between the boundary and the launch"));
  EXPECT_THAT(why_not(beside("bar.sync 0;")), HasSubstr("st.global.u32 (line 25:"));
  EXPECT_THAT(chain({{"st.global.u32 [%rd7], %r9;",
                      "st.global.u32 [%rd7], %r9; bar.sync 0; st.global.u32 [%rd7], %r9;"}}),
              HasSubstr(kLooksBack));
}

}  // namespace
}  // namespace klap::test
