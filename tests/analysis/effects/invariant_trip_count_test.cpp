#include "analysis/values/invariant_trip_count.h"

#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::test {
namespace {

// Of the loops around the first atomic.
bool is_fixed(const std::string& body) {
  const Kernel k = kernel("ld.param.u64 %rd1, [p]; ld.param.u32 %r9, [n]; mov.u32 %r1, 0;\n" + body);
  const auto& instructions = k.facts->flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    if (k.module.is(instructions[i].statement->head, "atom"))
      return analysis::InvariantTripCount(k.module, k.facts->flow, k.facts->data).around(i);
  }
  throw std::runtime_error("no atomic");
}

const std::string kAtom = "atom.global.add.u32 %r5, [%rd1], 1;\n";
const std::string kCount = "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r9;\n@%p1 bra L;\n";

TEST(InvariantTripCount, OfCounters) {
  EXPECT_TRUE(is_fixed("L:\n" + kAtom + kCount + "ret;"));
  EXPECT_TRUE(is_fixed("L: setp.ge.s32 %p1, %r1, %r9;\n@%p1 bra E;\n" + kAtom +
                       "add.s32 %r1, %r1, 1; bra L;\nE: ret;"));
  EXPECT_TRUE(is_fixed("L: setp.ge.s32 %p1, %r1, %r9;\n@%p1 ret;\n" + kAtom + "add.s32 %r1, %r1, 1; bra L;"));
  EXPECT_TRUE(is_fixed("L:\n" + kAtom +
                       "mov.u32 %r6, %ntid.x; add.s32 %r1, %r1, %r6;\n"
                       "setp.lt.s32 %p1, %r1, %r9;\n@%p1 bra L;\nret;"));
  // What is known before, wherever it is from.
  EXPECT_TRUE(is_fixed("ld.global.u32 %r9, [%rd1];\nL:\n" + kAtom + kCount + "ret;"));
  // Ways through the loop that differ.
  EXPECT_TRUE(is_fixed("L: ld.global.u32 %r2, [%rd1]; setp.eq.s32 %p2, %r2, 0;\n@%p2 bra M;\n" + kAtom +
                       "M:\n" + kCount + "ret;"));
  // One in another.
  EXPECT_TRUE(is_fixed("K: mov.u32 %r1, 0;\nL:\n" + kAtom + kCount +
                       "add.s32 %r8, %r8, 1; setp.lt.s32 %p3, %r8, 5;\n@%p3 bra K;\nret;"));
}

TEST(InvariantTripCount, NotByWhatIsReadInTheLoop) {
  const std::string test = "setp.eq.s32 %p1, %r2, 0;\n@%p1 bra L;\nret;";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "ld.global.u32 %r2, [%rd1];\n" + test));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "ld.shared.u32 %r2, [%r1];\n" + test));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "mov.u32 %r2, %r5;\n" + test)) << "the atomic itself";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "mov.u32 %r2, %clock;\n" + test));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n" + test));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "activemask.b32 %r2;\n" + test));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "add.cc.s32 %r3, %r5, %r5; addc.s32 %r2, %r1, 0;\n" + test));
  // The bound, the step or the predicate of the step.
  EXPECT_FALSE(is_fixed("L: ld.global.u32 %r9, [%rd1];\n" + kAtom + kCount + "ret;"));
  EXPECT_FALSE(
      is_fixed("L:\n" + kAtom + "add.s32 %r1, %r1, %r5; setp.lt.s32 %p1, %r1, %r9;\n@%p1 bra L;\nret;"));
  EXPECT_FALSE(is_fixed("L:\n" + kAtom +
                        "setp.ne.s32 %p2, %r5, 0;\n@%p2 add.s32 %r1, %r1, 1;\n"
                        "setp.lt.s32 %p1, %r1, %r9;\n@%p1 bra L;\nret;"));
}

TEST(InvariantTripCount, NotByTheWayThroughTheLoop) {
  const std::string look = "ld.global.u32 %r2, [%rd1]; setp.eq.s32 %p2, %r2, 0;\n";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + look +
                        "@%p2 bra M;\nadd.s32 %r1, %r1, 1;\nM: setp.lt.s32 %p1, %r1, %r9;\n" +
                        "@%p1 bra L;\nret;"))
      << "a step that is not always taken";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + look + "@%p2 bra L;\n" + kCount + "ret;")) << "back before the test";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + look + "@%p2 bra E;\n" + kCount + "E: ret;")) << "a second way out";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + look + "@%p2 bra M;\nsetp.gt.s32 %p3, %r9, 5;\n@%p3 bra E;\nM:\n" +
                        kCount + "E: ret;"))
      << "a way out that is not always come by";
  EXPECT_FALSE(is_fixed("L:\n" + kAtom + "bra L;")) << "no way out";
  EXPECT_FALSE(is_fixed(kAtom + "ret;")) << "no loop";
}

TEST(InvariantTripCount, OfAllLoopsAround) {
  const std::string inner = "L:\n" + kAtom + kCount;
  EXPECT_FALSE(is_fixed("K: mov.u32 %r1, 0;\n" + inner +
                        "ld.global.u32 %r2, [%rd1]; setp.eq.s32 %p3, %r2, 0;\n@%p3 bra K;\nret;"));
  // Of the outer one by what the inner one counts.
  EXPECT_FALSE(is_fixed("K: mov.u32 %r1, 0; mov.u32 %r8, 0;\nL:\n" + kAtom + "add.s32 %r8, %r8, %r5;\n" +
                        kCount + "setp.lt.s32 %p3, %r8, 5;\n@%p3 bra K;\nret;"));
}

}  // namespace
}  // namespace klap::test
