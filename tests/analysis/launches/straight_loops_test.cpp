// Loops of which several rounds can stand in a row are told from others, and with what they count.
#include "analysis/optimise/straight_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "fixture.h"
#include "ptx/tree.h"

namespace klap::analysis {
namespace {

// As nvcc has it, with what may differ in lines of its own.
constexpr char kSummingKernel[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 values, .param .u32 end)
{
.reg .pred %p<4>;
.reg .b32 %r<20>;
.reg .f32 %f<8>;
.reg .b64 %rd<12>;
.shared .b32 cell;
$L:
mul.wide.s32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r5, [%rd3];
add.s32 %r6, %r6, %r5;
add.s32 %r7, %r1, %r2;
add.s32 %r1, %r7, %r2;
setp.lt.s32 %p1, %r1, %r3;
@%p1 bra $L;
st.global.u32 [%rd1], %r6;
ret;
}
)";

std::vector<StraightLoop> straight_loops_in(const std::string& text) {
  static std::deque<ptx::Module> modules;  // the loops point into them
  modules.push_back(ptx::parse(text, "test"));
  return find_straight_loops(modules.back(), *modules.back().find_function("k"));
}

TEST(StraightLoops, KnowWhatTheyCount) {
  const auto found = straight_loops_in(kSummingKernel);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(7u, found[0].iteration.size());
  std::vector<std::string> counters;
  for (const auto& counter : found[0].counters)
    counters.push_back(std::string(counter.name) + ":" + std::to_string(counter.bits));
  EXPECT_THAT(counters, testing::ElementsAre("%r7:32", "%r1:32", "%p1:0"));
  EXPECT_EQ(3u, found[0].counting.size());
  EXPECT_EQ(1u, found[0].loads);
}

TEST(StraightLoops, MayGoOnWhereSomethingDoesNotHold) {
  const auto found = straight_loops_in(replaced(kSummingKernel, "@%p1 bra", "@!%p1 bra"));
  ASSERT_EQ(1u, found.size());
  EXPECT_TRUE(found[0].branch->predicate_negated);
}

TEST(StraightLoops, MayReadWhereTheThreadStands) {
  const auto found = straight_loops_in(
      replaced(kSummingKernel, "add.s32 %r1, %r7, %r2;", "mov.u32 %r8, %ntid.x;\nadd.s32 %r1, %r1, %r8;"));
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(3u, found[0].counting.size()) << "what %r7 was is of no account";
}

// A register that no counter is made of may come from anywhere.
TEST(StraightLoops, MayLoadWhatTheySum) {
  EXPECT_EQ(
      1u, straight_loops_in(replaced(kSummingKernel, "add.s32 %r6, %r6, %r5;", "@%p2 add.s32 %r6, %r6, %r5;"))
              .size());
  EXPECT_EQ(1u, straight_loops_in(replaced(kSummingKernel, "ld.global.u32 %r5, [%rd3];",
                                           "ld.global.nc.u32 %r5, [%rd3];\n.loc 1 2 3"))
                    .size());
  EXPECT_EQ(1u, straight_loops_in(replaced(kSummingKernel, "ld.global.u32", "ld.u32")).size());
}

TEST(StraightLoops, AreNoOtherLoops) {
  struct {
    const char* what;
    const char* with;
    const char* why;
  } const changes[] = {
      {"$L:\n", "$L:\n.pragma \"nounroll\";\n", "the program wants it so"},
      {"add.s32 %r6, %r6, %r5;", "st.global.u32 [%rd3], %r6;", "a store"},
      {"add.s32 %r6, %r6, %r5;", "red.global.add.u32 [%rd3], %r6;", "a reduction"},
      {"add.s32 %r6, %r6, %r5;", "bar.sync 0;", "a barrier"},
      {"add.s32 %r6, %r6, %r5;", "shfl.sync.down.b32 %r6, %r5, 1, 31, -1;", "a warp operation"},
      {"add.s32 %r6, %r6, %r5;", "activemask.b32 %r6;", "the lanes that are together"},
      {"add.s32 %r6, %r6, %r5;", "@%p2 bra $L;", "another way back"},
      {"add.s32 %r6, %r6, %r5;", "$M:\nadd.s32 %r6, %r6, %r5;", "a place to come in"},
      {"add.s32 %r6, %r6, %r5;", "@%p2 exit;", "a way out"},
      {"add.s32 %r6, %r6, %r5;", "{\nadd.s32 %r6, %r6, %r5;\n}", "a scope"},
      {"ld.global.u32", "ld.volatile.global.u32", "a load that others see"},
      {"ld.global.u32", "ld.relaxed.gpu.global.u32", "a load that others see"},
      {"ld.global.u32 %r5, [%rd3]", "ld.shared.u32 %r5, [cell]", "no wait for memory"},
      {"add.s32 %r1, %r7, %r2;", "add.s32 %r1, %r7, %r5;", "a counter from memory"},
      {"setp.lt.s32 %p1, %r1, %r3;", "setp.lt.s32 %p1, %r1, %r5;", "a bound from memory"},
      {"add.s32 %r1, %r7, %r2;", "@%p2 add.s32 %r1, %r7, %r2;", "a counter that may stay"},
      {"add.s32 %r1, %r7, %r2;", "mov.u32 %r1, %clock;", "a counter that nobody can know"},
      {"add.s32 %r1, %r7, %r2;", "mov.u32 %r1, %laneid;", "a counter of the lane's"},
      {"add.s32 %r1, %r7, %r2;", "mov.u32 %r1, cell;", "an address"},
      {"add.s32 %r1, %r7, %r2;", "add.cc.u32 %r1, %r7, %r2;", "a carry"},
      {"setp.lt.s32 %p1,", "setp.lt.s32 %p2,", "a predicate of before"},
      {"setp.lt.s32 %p1,", "setp.lt.s32 %p1|%p2,", "two predicates"},
      {"@%p1 bra $L", "bra $L", "no end"},
  };
  for (const auto& change : changes)
    EXPECT_TRUE(straight_loops_in(replaced(kSummingKernel, change.what, change.with)).empty()) << change.why;
}

TEST(StraightLoops, AreShort) {
  std::string more;
  for (int i = 0; i < 57; ++i) more += "add.s32 %r6, %r6, %r5;\n";
  EXPECT_EQ(1u, straight_loops_in(replaced(kSummingKernel, "add.s32 %r6, %r6, %r5;", more)).size());
  EXPECT_TRUE(
      straight_loops_in(replaced(kSummingKernel, "add.s32 %r6, %r6, %r5;", more + "add.s32 %r6, %r6, %r5;\n"))
          .empty());
}

}  // namespace
}  // namespace klap::analysis
