// How threads of a block can put one launch before another.
#include "analysis/synchronisation/synchronisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launches.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Launches 0 and 1 with code around them: whether 0 may come before 1 by what threads tell each other.
std::string order(const std::string& before, const std::string& between, const std::string& behind = "",
                  bool backwards = false) {
  const Kernel parent(text_of({"", "mov.u32 %r4, %r1;\n" + before + "\n",
                               launch("0") + between + "\n" + launch("1") + behind + "\n"}),
                      "parent");
  const auto at = [&](size_t site) {
    return parent.facts->flow.index_of(parent.facts->sites.at(site).get_call);
  };
  const size_t first = backwards ? 1 : 0;
  return to_text(may_be_synchronised(*parent.facts, at(first), at(1 - first)));
}

TEST(Synchronisation, StraightCodeIsFree) {
  EXPECT_EQ("no", order("", ""));
  EXPECT_EQ("no", order("", "add.s32 %r9, %r1, 1; st.global.u32 [table], %r9;"));
  EXPECT_EQ("no", order("", "ld.global.u32 %r9, [table];"));
  const Kernel parent(text_of({}), "parent");
  const uint32_t at = parent.facts->flow.index_of(parent.facts->sites.at(0).get_call);
  EXPECT_TRUE(is_order_free(*parent.facts, at, at));
}

TEST(Synchronisation, BarriersOrder) {
  EXPECT_THAT(order("", "bar.sync 0;"), StartsWith("yes"));
  EXPECT_EQ("no", order("", "bar.sync 0;", "", true));
  EXPECT_EQ("no", order("bar.sync 0;", ""));
  EXPECT_EQ("no", order("", "", "bar.sync 0;"));
}

TEST(Synchronisation, WarpOperationsOrder) {
  EXPECT_THAT(
      order("", "bar.warp.sync 0xffffffff;"),
      AllOf(StartsWith("unknown: lanes may meet at bar.warp.sync"), HasSubstr("between the launches")));
  EXPECT_EQ("no", order("bar.warp.sync 0xffffffff;", ""));
  // What all have passed once before they launch is no order; what some of them pass may be.
  const std::string shuffle = "shfl.sync.idx.b32 %r9, %r1, 0, 31, 0xffffffff;";
  EXPECT_EQ("no", order(shuffle, ""));
  EXPECT_EQ("no", order(shuffle, "", "", true));
  EXPECT_THAT(order("setp.eq.s32 %p1, %r3, 0; @%p1 bra OVER; " + shuffle + " OVER:", ""),
              StartsWith("unknown: lanes may meet at shfl.sync.idx.b32"));
  EXPECT_THAT(order(shuffle, "", shuffle), StartsWith("unknown: lanes may meet at shfl.sync.idx.b32"));
}

// A lane may have launched, and ended, while others still go round.
TEST(Synchronisation, LanesThatLeaveALoopOrder) {
  EXPECT_THAT(order("mov.u32 %r10, 0; ROUND: shfl.sync.idx.b32 %r9, %r1, 0, 31, 0xffffffff; "
                    "add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, %r1; @%p1 bra ROUND;",
                    ""),
              StartsWith("unknown: lanes may meet at shfl.sync.idx.b32"));
}

// Barriers do not wait for threads that have ended.
TEST(Synchronisation, ThreadsThatEndOrder) {
  const std::string other_way = "setp.ge.u32 %p1, %r1, 32; @%p1 bra OTHER;";
  EXPECT_THAT(order(other_way, "ret; OTHER: bar.sync 0;"), testing::Not("no"));
  EXPECT_THAT(order(other_way, "ret; OTHER: bar.warp.sync 0xffffffff;"), testing::Not("no"));
  EXPECT_EQ("no", order(other_way, "ret; OTHER:"));
}

TEST(Synchronisation, RoundsOrder) {
  const auto iteration = [](const std::string& code) {
    const Kernel parent(text_of({"", "mov.u32 %r4, %r1; mov.u32 %r10, 0; AGAIN:",
                                 code + launch() +
                                     "add.s32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, %r3; "
                                     "@%p2 bra AGAIN;\n"}),
                        "parent");
    const uint32_t at = parent.facts->flow.index_of(parent.facts->sites.at(0).get_call);
    return is_order_free(*parent.facts, at, at);
  };
  EXPECT_TRUE(iteration(""));
  EXPECT_FALSE(iteration("bar.sync 0;"));
  EXPECT_FALSE(iteration("bar.warp.sync 0xffffffff;"));
  EXPECT_FALSE(iteration("shfl.sync.idx.b32 %r9, %r1, 0, 31, 0xffffffff;"));
  EXPECT_FALSE(iteration("vote.sync.any.pred %p9, %p8, 0xffffffff;"));
  EXPECT_FALSE(iteration("activemask.b32 %r9;"));
  EXPECT_FALSE(iteration("match.any.sync.b32 %r9, %r1, 0xffffffff;"));
  EXPECT_FALSE(iteration("atom.global.add.u32 %r9, [counter], 1;"));
  EXPECT_FALSE(iteration("st.global.u32 [table], 1; ld.relaxed.gpu.global.u32 %r9, [table];"));
  EXPECT_FALSE(iteration("st.global.u32 [table], 1; ld.global.cg.u32 %r9, [table];"));
  EXPECT_FALSE(iteration("red.global.add.u32 [table], 1; ld.volatile.global.u32 %r9, [table];"));
  EXPECT_TRUE(iteration("red.global.add.u32 [table], 1; ld.global.u32 %r9, [table];"));
  EXPECT_FALSE(iteration("st.global.u32 [table], 1; membar.gl;"));
}

TEST(Synchronisation, MemoryOrders) {
  // One atomic is behind the one launch and before the other.
  EXPECT_THAT(order("", "atom.global.add.u32 %r9, [counter], 1;"),
              AllOf(StartsWith("unknown: atom.global.add.u32"), HasSubstr("of the launch")));
  EXPECT_THAT(order("atom.global.add.u32 %r9, [counter], 1;", "", "st.global.u32 [counter], 1;"),
              StartsWith("unknown: st.global.u32"));
  EXPECT_THAT(order("ld.volatile.global.u32 %r9, [counter];", "", "st.global.u32 [counter], 1;"),
              HasSubstr("may tell ld.volatile.global.u32"));
  EXPECT_EQ("no", order("atom.global.add.u32 %r9, [counter], 1;", ""));
  EXPECT_EQ("no", order("", "", "atom.global.add.u32 %r9, [counter], 1;"));
  // Nobody looks.
  EXPECT_EQ("no", order("", "red.global.add.u32 [counter], 1;"));
}

}  // namespace
}  // namespace klap::test
