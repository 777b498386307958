// How far a link can run before the link in front of it launches it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The lines about the overlap.
std::string overlap(const Changes& changes, bool noalias = false) {
  const Kernel k = chain_kernel(changes);
  const auto verdict = judge_promotion(*k.facts, noalias);
  if (verdict.facts == nullptr) return verdict.rejection->detail;
  const analysis::ChainFacts& chain = *verdict.facts;
  std::string out = chain.boundary == nullptr ? "none" : k.module.compact(chain.boundary->tokens);
  out += ": " + chain.boundary_text + "\n";
  for (const ptx::Statement* s : chain.moved) out += k.module.compact(s->tokens) + "\n";
  return out;
}
// `code` in front of the barrier, or behind it.
Changes in_front(const std::string& code) { return {{"bar.sync 0;", code + " bar.sync 0;"}}; }
Changes behind(const std::string& code) { return {{"bar.sync 0;", "bar.sync 0; " + code}}; }

TEST(Overlap, UpToTheLaunch) {
  EXPECT_EQ("@%p3 bra DONE;: threads go different ways from bra (line 29:6)\nld.param.u32 %r3, [sum];\n",
            overlap({}));
}

TEST(Overlap, EndsWhereAnArgumentIsNeeded) {
  EXPECT_THAT(overlap(behind("setp.gt.s32 %p9, %r3, 0; @%p9 bra OVER; OVER:")),
              AllOf(testing::StartsWith("@%p9 bra OVER;: bra (line 24:"),
                    HasSubstr("needs an argument that is not known before the launch\n"
                              "ld.param.u32 %r3, [sum];\nsetp.gt.s32 %p9, %r3, 0;\n")));
  EXPECT_THAT(overlap(in_front("st.shared.u32 [room], %r3;")),
              testing::StartsWith("st.shared.u32 [room], %r3;: "));
  EXPECT_THAT(overlap(in_front("mov.u32 %r30, %r3; @%p9 mov.u32 %r30, 0;")),
              testing::StartsWith("mov.u32 %r30, %r3;: "));
  // In a loop nothing is moved.
  EXPECT_THAT(
      overlap(in_front(
          "AGAIN: add.s32 %r30, %r3, 1; add.s32 %r31, %r31, 1; setp.lt.s32 %p9, %r31, 9; @%p9 bra AGAIN;")),
      AllOf(testing::StartsWith("none: "), HasSubstr("add.s32 (line 24:")));
  // Its address is as good as its value.
  EXPECT_THAT(overlap({{"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; mov.b64 %rd30, sum;"}}),
              HasSubstr("mov.b64 (line 17:"));
}

TEST(Overlap, MovesWhatCanWait) {
  EXPECT_EQ(
      "@%p3 bra DONE;: threads go different ways from bra (line 29:6)\n"
      "ld.param.u32 %r3, [sum];\nadd.s32 %r30, %r3, %r5;\nmul.lo.s32 %r31, %r30, 3;\n",
      overlap(behind("add.s32 %r30, %r3, %r5; mul.lo.s32 %r31, %r30, 3;")));
  // Not if what it works on changes in between.
  EXPECT_THAT(overlap(behind("mov.u32 %r20, 1; add.s32 %r30, %r3, %r20; mov.u32 %r20, 2;")),
              testing::StartsWith("add.s32 %r30, %r3, %r20;: "));
}

TEST(Overlap, EndsAtWhatOthersSee) {
  // That the load in front may read what is written there is not to be the reason.
  const auto overlap = [](const Changes& changes) { return test::overlap(changes, true); };
  EXPECT_THAT(
      overlap(behind("st.global.u32 [%rd4], %r5;")),
      testing::StartsWith(
          "st.global.u32 [%rd4], %r5;: st.global.u32 (line 24:13) writes memory that others can see"));
  EXPECT_THAT(overlap(behind("atom.global.add.u32 %r30, [%rd4], 1;")),
              HasSubstr("atom.global.add.u32 (line 24:13) depends on when it runs"));
  EXPECT_THAT(overlap(behind("red.global.add.u32 [%rd4], 1;")), HasSubstr("depends on when it runs"));
  EXPECT_THAT(overlap(behind("ld.volatile.global.u32 %r30, [%rd4];")), HasSubstr("depends on when it runs"));
  EXPECT_THAT(overlap(behind("membar.gl;")), HasSubstr("membar.gl (line 24:13) must not come early"));
  EXPECT_THAT(overlap(behind("nanosleep.u32 10;")), HasSubstr("must not come early"));
  EXPECT_THAT(overlap(behind("mov.u32 %r30, %clock;")),
              HasSubstr("%clock is read (line 24:13), which depends on the moment"));
  EXPECT_THAT(overlap({{".global", ".func f() { ret; }\n.global"}, {"bar.sync 0;", "bar.sync 0; call f;"}}),
              HasSubstr("call (line 25:13) may do what others can see"));
}

TEST(Overlap, SharedMemoryIsTheBlocksOwn) {
  for (const char* code : {"st.shared.u32 [room], %r5;", "atom.shared.add.u32 %r30, [room], 1;",
                           "ld.volatile.shared.u32 %r30, [room];", "shfl.sync.bfly.b32 %r30, %r5, 1, 31, -1;",
                           "mov.u32 %r31, room; ld.shared.u32 %r30, [%r31];"})
    EXPECT_THAT(overlap(behind(code)), testing::StartsWith("@%p3 bra DONE;: ")) << code;
}

TEST(Overlap, AllThreadsMustPass) {
  EXPECT_THAT(
      overlap({{"bar.sync 0;", ""},
               {"cvta.to.global.u64 %rd3, %rd1;",
                "setp.gt.s32 %p9, %r4, %r1; @%p9 bra DONE; cvta.to.global.u64 %rd3, %rd1;"}}),
      testing::StartsWith(
          "none: nothing that takes time stands in front; threads go different ways from bra (line 18:"));
}

// A write before the launch: what the next link loads may be that.
TEST(Overlap, WritesBeforeTheLaunch) {
  const std::string write = "st.global.u32 [%rd7], %r5;";
  const Changes before = {{"mov.u64 %rd10, k;", write + " mov.u64 %rd10, k;"}};
  EXPECT_THAT(
      overlap(before),
      AllOf(
          testing::StartsWith("none: nothing that takes time"),
          HasSubstr(
              "ld.global.u32 (line 23:1) may read what st.global.u32 (line 30:1) writes before the launch")));
  // What the compiler says of one link does not help; what the user says does.
  EXPECT_THAT(overlap({{"ld.global.u32 %r5", "ld.global.nc.u32 %r5"}, before[0]}),
              HasSubstr("writes before the launch"));
  EXPECT_THAT(overlap(before, true), testing::StartsWith("@%p3 bra DONE;: "));
  // Other memory.
  EXPECT_THAT(overlap({{"ld.global.u32 %r5, [%rd6];", "ld.const.u32 %r5, [%rd6];"}, before[0]}),
              testing::StartsWith("@%p3 bra"));
  EXPECT_THAT(
      overlap({{"ld.global.u32 %r5, [%rd6];", "mov.u64 %rd30, table; ld.global.u32 %r5, [%rd30];"},
               {"mov.u64 %rd10, k;", "mov.u64 %rd31, other; st.global.u32 [%rd31], %r5; mov.u64 %rd10, k;"},
               {".visible", ".global .u32 other[8];\n.visible"}}),
      testing::StartsWith("@%p3 bra"));
  EXPECT_THAT(
      overlap({{"ld.global.u32 %r5, [%rd6];", "mov.u64 %rd30, table; ld.global.u32 %r5, [%rd30];"},
               {"mov.u64 %rd10, k;", "mov.u64 %rd31, table; st.global.u32 [%rd31], %r5; mov.u64 %rd10, k;"}}),
      HasSubstr("writes before the launch"));
}

// By other threads: a barrier, or whatever else makes the write visible, stands between.
TEST(Overlap, WritesThatABarrierOrders) {
  const auto beside = [](const std::string& then) {
    return Changes{
        {"@%p3 bra DONE;", "@!%p1 bra FIRST; st.global.u32 [%rd7], %r5; FIRST: " + then + " @%p3 bra DONE;"}};
  };
  EXPECT_THAT(overlap(beside("bar.sync 0;")), HasSubstr("writes before the launch"));
  // Where no way leads from the write to the launch, but both meet at the barrier.
  EXPECT_THAT(
      overlap({{"or.pred %p3, %p1, %p2;\n@%p3 bra DONE;", "@%p1 bra OTHERS; bar.sync 0; @%p2 bra DONE;"},
               {"DONE:", "bra DONE; OTHERS: st.global.u32 [%rd7], %r5; bar.sync 0; DONE:"}}),
      HasSubstr("writes before the launch"));
  // In the end, when nothing orders it any more; by a barrier behind the launch neither.
  EXPECT_THAT(overlap({{"st.global.u32 [%rd7], %r9;", "st.global.u32 [%rd7], %r9; bar.sync 0;"}}),
              testing::StartsWith("@%p3 bra"));
  EXPECT_THAT(overlap({{"st.global.u32 [%rd7], %r9;",
                        "st.global.u32 [%rd7], %r9; shfl.sync.bfly.b32 %r30, %r5, 1, 31, -1;"}}),
              testing::StartsWith("@%p3 bra"));
  // A barrier of a warp may meet one in front of the launch: which, is not counted.
  EXPECT_THAT(overlap({{"bar.sync 0;", "bar.sync 0; bar.warp.sync -1;"},
                       {"st.global.u32 [%rd7], %r9;", "st.global.u32 [%rd7], %r9; bar.warp.sync -1;"}}),
              HasSubstr("writes before the launch"));
  // Published, and looked for before the launch.
  const std::pair<std::string, std::string> publish = {
      "st.global.u32 [%rd7], %r9;",
      "st.global.u32 [%rd7], %r9; membar.gl; st.volatile.shared.u32 [room], %r5;"};
  EXPECT_THAT(overlap({publish}), testing::StartsWith("@%p3 bra"));
  EXPECT_THAT(
      overlap({publish, {"mov.u64 %rd10, k;", "ld.volatile.shared.u32 %r30, [room]; mov.u64 %rd10, k;"}}),
      HasSubstr("writes before the launch"));
}

// ---- the annotation ----

const std::string kMark = "{ .reg .pred __klap_overlap$boundary; }";

TEST(Overlap, AnnotatedEarlier) {
  const Changes early = {{"setp.ne.s32 %p1", kMark + " setp.ne.s32 %p1"}};
  EXPECT_THAT(overlap(early),
              testing::StartsWith("setp.ne.s32 %p1, %r4, 0;: KLAP_OVERLAP_BOUNDARY (line 26:14)\n"));
  EXPECT_THAT(chain(early), HasSubstr("overlap: up to line 26:41, as annotated: "));
}

TEST(Overlap, AnnotatedWhereItIsFound) {
  EXPECT_THAT(overlap({{"@%p3 bra DONE;", kMark + " @%p3 bra DONE;"}}),
              testing::StartsWith("@%p3 bra DONE;: KLAP_OVERLAP_BOUNDARY"));
  // In front of a label there is no instruction: the one before it is taken.
  EXPECT_THAT(overlap({{"setp.ne.s32 %p1", kMark + " HERE: setp.ne.s32 %p1"}}),
              testing::StartsWith("add.s32 %r6, %r2, 1;: KLAP_OVERLAP_BOUNDARY"));
}

// Behind a load that might read what is written before the launch.
TEST(Overlap, AnnotatedLater) {
  const Changes write = {{"mov.u64 %rd10, k;", "st.global.u32 [%rd7], %r5; mov.u64 %rd10, k;"}};
  Changes marked = write;
  marked.emplace_back("setp.ne.s32 %p1", kMark + " setp.ne.s32 %p1");
  EXPECT_THAT(overlap(write), testing::StartsWith("none: "));
  EXPECT_THAT(overlap(marked), testing::StartsWith("setp.ne.s32 %p1, %r4, 0;: KLAP_OVERLAP_BOUNDARY"));
}

TEST(Overlap, AnnotatedInVain) {
  const Changes needed = {{"bar.sync 0;", "bar.sync 0; st.shared.u32 [room], %r3;"},
                          {"@%p3 bra", kMark + " @%p3 bra"}};
  EXPECT_THAT(overlap(needed), AllOf(testing::StartsWith("st.shared.u32 [room], %r3;: "),
                                     HasSubstr("; KLAP_OVERLAP_BOUNDARY (line 29:14) is ignored: "
                                               "st.shared.u32 (line 24:13) needs an argument")));
  EXPECT_THAT(
      overlap({{"bar.sync 0;", "bar.sync 0; st.global.u32 [%rd4], %r5;"}, {"@%p3 bra", kMark + " @%p3 bra"}}),
      HasSubstr("is ignored: st.global.u32 (line 24:13) writes memory that others can see"));
  EXPECT_THAT(overlap({{"mov.u64 %rd10, k;", kMark + " mov.u64 %rd10, k;"}}),
              HasSubstr("is ignored: not all threads of the block pass it once and before the launch"));
  EXPECT_THAT(overlap({{"add.s32 %r9", kMark + " add.s32 %r9"}}), HasSubstr("is ignored: not all threads"));
  EXPECT_THAT(overlap({{"setp.ne.s32 %p1", kMark + " setp.ne.s32 %p1"},
                       {"setp.ge.s32 %p2", kMark + " setp.ge.s32 %p2"}}),
              HasSubstr("is ignored: there is another one"));
  EXPECT_THAT(overlap({{"ld.param.u64 %rd1", kMark + " ld.param.u64 %rd1"}}),
              testing::StartsWith("none: nothing that takes time"));
}

TEST(Overlap, WithNoPlaceAtAll) {
  EXPECT_THAT(
      overlap({{"bar.sync 0;", ""},
               {"ld.param.u64 %rd1, [p];", "AGAIN: ld.param.u64 %rd1, [p]; @%p10 ret; @%p9 bra AGAIN;"}}),
      testing::StartsWith("none: no place before the launch is passed by all threads of the block"));
}

}  // namespace
}  // namespace klap::test
