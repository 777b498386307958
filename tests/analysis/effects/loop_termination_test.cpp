// Loops that end by themselves and loops that may wait, on what nvcc makes and by hand.
#include "analysis/effects/loop_termination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/effects/waiting.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using testing::HasSubstr;

std::optional<std::string> waits(const Kernel& k) {
  return Waiting(k.module, k.facts->flow, k.facts->data).find();
}
std::optional<std::string> fixture_waits(const char* name) {
  return waits(Kernel(fixture("loops.ptx"), name));
}
bool body_waits(const std::string& body) { return waits(kernel(body)).has_value(); }

TEST(LoopTermination, OfUnionFind) {
  EXPECT_EQ(std::nullopt, fixture_waits("_Z5unitePiPKiS1_"));
  EXPECT_EQ(std::nullopt, fixture_waits("_Z11unite_rootsPiPKiS1_"));
}
TEST(LoopTermination, OfAWalkThatStopsWhereSomebodyWas) {
  EXPECT_EQ(std::nullopt, fixture_waits("_Z4walkPiPKii"));
}
TEST(LoopTermination, OfAChaseThatFalls) { EXPECT_EQ(std::nullopt, fixture_waits("_Z13chase_fallingPiPKi")); }

// A ring of cells, or a cell that points to itself until somebody fills it in, would keep it going.
TEST(LoopTermination, OfAnyOtherChaseIsUnknown) {
  EXPECT_THAT(fixture_waits("_Z5chasePiPKi").value_or(""), HasSubstr("ld.volatile.global.u32 in a loop"));
}
TEST(LoopTermination, OfAWalkThatWaitsIsUnknown) {
  EXPECT_THAT(fixture_waits("_Z13walk_and_waitPiPKii").value_or(""),
              HasSubstr("atom.global.max.s32 in a loop"));
}
TEST(LoopTermination, OfALockInALoopIsUnknown) {
  EXPECT_THAT(fixture_waits("_Z9lock_eachPiS_i").value_or(""), HasSubstr("atom.global.cas.b32 in a loop"));
}

// A walk by atomic maximum: x = next(x); old = atomicMax(&cell[x], v); if (TEST) go on.
std::string walk(const std::string& atomic, const std::string& test, const std::string& extra = "") {
  return "L: ld.global.u32 %r1, [%rd2]; mul.wide.s32 %rd3, %r1, 4; add.s64 %rd2, %rd1, %rd3; " + atomic +
         "; " + extra + " setp." + test + "; @%p1 bra L; ret;";
}

TEST(LoopTermination, ByAnAtomicThatMustHaveChangedItsCell) {
  const std::string max = "atom.global.max.s32 %r2, [%rd2], %r3",
                    min = "atom.global.min.u32 %r2, [%rd2], %r3";
  EXPECT_FALSE(body_waits(walk(max, "lt.s32 %p1, %r2, %r3")));
  EXPECT_FALSE(body_waits(walk(max, "gt.s32 %p1, %r3, %r2")));
  EXPECT_FALSE(body_waits(walk(min, "gt.u32 %p1, %r2, %r3")));
  EXPECT_FALSE(body_waits(walk(min, "hi.u32 %p1, %r2, %r3")));
  // It may go on without having changed anything.
  EXPECT_TRUE(body_waits(walk(max, "le.s32 %p1, %r2, %r3")));
  EXPECT_TRUE(body_waits(walk(max, "ge.s32 %p1, %r2, %r3")));
  EXPECT_TRUE(body_waits(walk(max, "ne.s32 %p1, %r2, %r3")));
  EXPECT_TRUE(body_waits(walk(max, "lt.s32 %p1, %r2, %r4"))) << "compared with something else";
  EXPECT_TRUE(body_waits(walk(max, "lt.u32 %p1, %r2, %r3"))) << "compared in another order";
  // Where nothing was changed, the value compared with is greater than the one before: it rises.
  EXPECT_FALSE(body_waits(walk(max, "lt.s32 %p1, %r2, %r3", "add.s32 %r3, %r3, 1;")));
  EXPECT_TRUE(body_waits(walk(max, "lt.s32 %p1, %r2, %r4", "ld.global.u32 %r4, [%rd5];")));
}

TEST(LoopTermination, NeedsAllWritesToGoOneWay) {
  const std::string max = "atom.global.max.s32 %r2, [%rd2], %r3", test = "lt.s32 %p1, %r2, %r3";
  EXPECT_FALSE(body_waits(walk(max, test, "red.global.max.s32 [%rd4], %r5;")));
  EXPECT_FALSE(body_waits(walk(max, test, "st.local.u32 [%rd4], %r5;")));
  for (const char* other :
       {"red.global.min.s32 [%rd4], %r5;", "red.global.max.u32 [%rd4], %r5;",
        "red.global.max.s64 [%rd4], %rd5;", "st.global.u32 [%rd4], %r5;", "st.u32 [%rd4], %r5;",
        "atom.global.exch.b32 %r6, [%rd4], %r5;", "call something;", "bar.sync 0;", "membar.gl;",
        "nanosleep.u32 10;", "frobnicate.u32 %r6, %r5;"}) {
    EXPECT_TRUE(body_waits(walk(max, test, other))) << other;
  }
}

// A look at one place that ends at some time may be a wait with a time-out.
TEST(LoopTermination, NeedsNewAddresses) {
  EXPECT_TRUE(
      body_waits("L: add.s32 %r3, %r3, 1; atom.global.max.s32 %r2, [%rd2], %r3; setp.lt.s32 %p1, %r2, %r3; "
                 "@%p1 bra L; ret;"));
  EXPECT_TRUE(
      body_waits("mov.u32 %r1, 100; L: add.s32 %r1, %r1, -1; ld.volatile.global.u32 %r2, [%rd2]; "
                 "setp.ne.s32 %p1, %r2, 0; @%p1 bra E; setp.ne.s32 %p2, %r1, 0; @%p2 bra L; E: ret;"));
}

std::string chase(const std::string& test, const std::string& load = "ld.volatile.global.u32 %r1, [%rd2]") {
  return "L: mov.u32 %r5, %r1; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; " + load + "; setp." +
         test + "; @%p1 bra L; ret;";
}
TEST(LoopTermination, ByARank) {
  EXPECT_FALSE(body_waits(chase("lt.s32 %p1, %r1, %r5")));
  EXPECT_FALSE(body_waits(chase("gt.s32 %p1, %r1, %r5"))) << "a rank that rises";
  EXPECT_FALSE(body_waits(chase("lt.u32 %p1, %r1, %r5")));
  EXPECT_FALSE(body_waits(chase("lt.s32 %p1, %r1, %r5", "ld.acquire.gpu.global.u32 %r1, [%rd2]")));
  EXPECT_TRUE(body_waits(chase("le.s32 %p1, %r1, %r5")));
  EXPECT_TRUE(body_waits(chase("ne.s32 %p1, %r1, %r5")));
  EXPECT_TRUE(body_waits(chase("lt.s32 %p1, %r1, %r6")));
  EXPECT_TRUE(body_waits(chase("lt.f32 %p1, %r1, %r5")));
  // A comparison of half the register's width proves nothing about the whole.
  EXPECT_TRUE(body_waits(chase("lt.s16 %p1, %r1, %r5")));
}

// Memory that nobody writes does not change between two looks at it.
TEST(LoopTermination, ByConditionsThatOnlyOthersCanFulfil) {
  const auto twice = [](const std::string& between) {
    return "L: mul.wide.s32 %rd2, %r1, 4; add.s64 %rd4, %rd1, %rd2; ld.volatile.global.u32 %r1, [%rd4]; " +
           between + " ld.volatile.global.u32 %r2, [%rd4]; setp.ne.s32 %p1, %r1, %r2; @%p1 bra L; ret;";
  };
  EXPECT_FALSE(body_waits(twice("")));
  EXPECT_FALSE(body_waits(twice("add.s32 %r7, %r7, 1;")));
  // The loop itself may be the one that writes.
  EXPECT_TRUE(body_waits(twice("st.global.u32 [%rd5], %r6;")));
  EXPECT_TRUE(body_waits(twice("st.local.u32 [%rd5], %r6;")));
  EXPECT_TRUE(body_waits(twice("red.global.add.u32 [%rd5], %r6;")));
  EXPECT_TRUE(body_waits(twice("add.s64 %rd6, %rd4, 8; atom.global.cas.b32 %r3, [%rd6], %r5, %r6;")));
  EXPECT_TRUE(body_waits(twice("add.s64 %rd4, %rd4, 8;"))) << "another place";
}

TEST(LoopTermination, ReadsNegatedPredicates) {
  const auto branch = [](const std::string& test) {
    std::string text = chase(test);
    return text.replace(text.find("@%p1"), 4, "@!%p1");
  };
  EXPECT_FALSE(body_waits(branch("ge.s32 %p1, %r1, %r5")));
  EXPECT_TRUE(body_waits(branch("lt.s32 %p1, %r1, %r5")));
}

TEST(LoopTermination, ReadsCombinedPredicates) {
  const auto combined = [](const std::string& test) {
    return "L: mov.u32 %r5, %r1; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; "
           "ld.volatile.global.u32 %r1, [%rd2]; " +
           test + " ret;";
  };
  EXPECT_FALSE(body_waits(combined("setp.lt.s32 %p1, %r1, %r5; and.pred %p3, %p1, %p2; @%p3 bra L;")));
  EXPECT_FALSE(body_waits(combined("setp.ge.s32 %p1, %r1, %r5; or.pred %p3, %p2, %p1; @!%p3 bra L;")));
  EXPECT_FALSE(body_waits(combined("setp.ge.s32 %p1, %r1, %r5; not.pred %p3, %p1; @%p3 bra L;")));
  EXPECT_TRUE(body_waits(combined("setp.lt.s32 %p1, %r1, %r5; or.pred %p3, %p1, %p2; @%p3 bra L;")));
  EXPECT_TRUE(body_waits(combined("setp.ge.s32 %p1, %r1, %r5; and.pred %p3, %p2, %p1; @!%p3 bra L;")));
}

TEST(LoopTermination, OfALoopWithTwoEntriesIsUnknown) {
  EXPECT_TRUE(
      body_waits("@%p3 bra M; L: mov.u32 %r5, %r1; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; M: "
                 "ld.volatile.global.u32 %r1, [%rd2]; setp.lt.s32 %p1, %r1, %r5; @%p1 bra L; ret;"));
}

// Inner loops may do anything to what they write, as often as they like.
TEST(LoopTermination, OfNestedLoops) {
  const auto nested = [](const std::string& inner) {
    return "L: mov.u32 %r5, %r1; I: " + inner +
           " @%p2 bra I; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; "
           "ld.volatile.global.u32 %r1, [%rd2]; setp.lt.s32 %p1, %r1, %r5; @%p1 bra L; ret;";
  };
  EXPECT_FALSE(body_waits(nested("add.s32 %r6, %r6, 1;")));
  EXPECT_TRUE(body_waits(nested("add.s32 %r5, %r5, 1;")));
  // The first round leaves %r5 what it was, the second one does not.
  EXPECT_TRUE(
      body_waits("L: mov.u32 %r8, %r1; I: mov.u32 %r5, %r8; mov.u32 %r8, %r9; @%p2 bra I; "
                 "mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; ld.volatile.global.u32 %r1, [%rd2]; "
                 "setp.lt.s32 %p1, %r1, %r5; @%p1 bra L; ret;"));
  EXPECT_TRUE(body_waits(nested("ld.volatile.global.u32 %r7, [%rd2]; setp.eq.s32 %p2, %r7, 0;")));
}

TEST(Waiting, SeesTheInnerLoopThatAnAtomicDecides) {
  EXPECT_TRUE(
      body_waits("O: I: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra I; "
                 "add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %r3; @%p2 bra O; ret;"));
  EXPECT_FALSE(
      body_waits("O: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra S; "
                 "st.global.u32 [%rd2], %r2; S: add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %r3; @%p2 bra O; "
                 "ret;"))
      << "it decides nothing about the loop";
}

// What nothing reads decides nothing, although the loop goes on by memory that the block's threads share.
TEST(Waiting, DoesNotCountAReduction) {
  const auto counts = [](const std::string& atomic, const std::string& use) {
    std::string text = kernel_text("mov.u64 %rd2, word; L: " + atomic + " %r1, [%rd1], 1; " + use +
                                   "ld.shared.u32 %r2, [word]; add.s32 %r3, %r2, 1; "
                                   "st.shared.u32 [word], %r3; setp.lt.s32 %p1, %r2, 9; @%p1 bra L; ret;");
    text.insert(text.find(".visible"), ".shared .align 4 .b32 word;\n");
    return waits(Kernel(text, "k")).has_value();
  };
  EXPECT_FALSE(counts("atom.global.add.u32", ""));
  EXPECT_TRUE(counts("atom.global.add.u32", "st.global.u32 [%rd3], %r1; "));
  EXPECT_TRUE(counts("atom.acquire.gpu.global.add.u32", ""));
}

// The expected value must be computed anew in the loop that retries.
TEST(Waiting, TellsARetryFromALock) {
  const std::string swap = "atom.global.cas.b32 %r1, [%rd1], %r2, %r3; setp.ne.s32 %p1, %r1, %r2; ";
  EXPECT_FALSE(body_waits("I: " + swap + "mov.u32 %r2, %r1; @%p1 bra I; ret;"));
  EXPECT_TRUE(body_waits("ld.global.u32 %r2, [%rd2]; I: " + swap + "@%p1 bra I; ret;"));
  EXPECT_TRUE(body_waits("O: ld.global.u32 %r2, [%rd2]; I: " + swap + "@%p1 bra I; @%p2 bra O; ret;"));
}

// Takes messages from a box; a message is taken by `take`, and what `idle` does is done without one.
std::string messages(const std::string& look, const std::string& take, const std::string& idle = "") {
  return "mov.u32 %r4, 0; mov.u32 %r7, 0; L: mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; " + look +
         " setp.eq.s32 %p1, %r2, 0; @%p1 bra I; " + take + " bra J; I: " + idle +
         " J: setp.lt.s32 %p2, %r4, %r3; @%p2 bra L; st.global.u32 [%rd2], %r7; ret;";
}

TEST(Waiting, SeesALoopThatStaysAsItIsWithoutAMessage) {
  const std::string take = "st.global.u32 [%rd2], %r2; add.s32 %r4, %r4, 1;",
                    exchange = "atom.global.exch.b32 %r2, [%rd4], 0;";
  for (const std::string& look :
       {exchange, std::string("atom.global.add.u32 %r2, [%rd4], 0;"),
        std::string("atom.global.cas.b32 %r2, [%rd4], 1, 0;"), std::string("ld.global.cg.u32 %r2, [%rd4];"),
        std::string("ld.u32 %r2, [%rd4];")})
    EXPECT_TRUE(body_waits(messages(look, take))) << look;
  // Counting the attempts changes nothing, unless the loop goes by them.
  EXPECT_TRUE(body_waits(messages(exchange, take, "add.s32 %r7, %r7, 1;")));
  EXPECT_FALSE(body_waits(messages(exchange, take, "add.s32 %r4, %r4, 1;")));
  // Nor does waiting a little longer each time, or writing again what is known to be there.
  EXPECT_TRUE(body_waits(messages(exchange, take,
                                  "mov.u32 %r8, 0; K: add.s32 %r8, %r8, 1; "
                                  "setp.lt.s32 %p3, %r8, %r9; @%p3 bra K; shl.b32 %r9, %r9, 1;")));
  EXPECT_TRUE(
      body_waits(messages("setp.ne.s32 %p3, %r4, 2; @%p3 bra K; mov.u32 %r4, 2; K: " + exchange, take)));
  EXPECT_FALSE(body_waits(messages(exchange, take, "add.s32 %r3, %r3, -1;")));
  EXPECT_FALSE(body_waits(messages(exchange, take, "st.global.u32 [%rd4], %r1;")));
  // A ticket is another one every time, and memory that nobody writes is no box.
  EXPECT_FALSE(body_waits(messages("atom.global.add.u32 %r2, [%rd4], 1;", take)));
  EXPECT_FALSE(body_waits(messages("ld.global.nc.u32 %r2, [%rd4];", take)));
  // Both ways move on, or the idle way cannot be gone.
  EXPECT_FALSE(body_waits(messages(exchange, take,
                                   "setp.lt.s32 %p3, %r7, 9; @%p3 bra K; add.s32 %r4, %r4, 1; bra J; "
                                   "K: add.s32 %r4, %r4, 2;")));
  EXPECT_FALSE(body_waits(messages("ld.global.u32 %r2, [%rd4];", take,
                                   "setp.lt.s32 %p3, %r4, %r3; @!%p3 bra J; add.s32 %r4, %r4, 1;")));
}

TEST(Waiting, ReadsARowOfPlacesInACountedLoop) {
  const auto row = [](const std::string& work, const std::string& behind = "") {
    return "L: " + work + " add.u64 %rd4, %rd4, 4; add.s32 %r4, %r4, -4; " + behind +
           " setp.ne.s32 %p1, %r4, 0; @%p1 bra L; st.global.u32 [%rd2], %r1; ret;";
  };
  const std::string load = "ld.volatile.global.u32 %r2, [%rd4]; add.s32 %r1, %r1, %r2;";
  EXPECT_FALSE(body_waits(row(load)));
  // What decides how often the loop goes round comes from memory, another lane, or a clock.
  EXPECT_TRUE(body_waits(row("ld.volatile.global.u32 %r4, [%rd4];")));
  EXPECT_TRUE(body_waits(row(load, "setp.eq.s32 %p2, %r2, 7; @%p2 bra J;") + " J: ret;"));
  EXPECT_TRUE(body_waits(row(load, "setp.eq.s32 %p2, %r2, 0; @%p2 add.s32 %r4, %r4, 4;")));
  EXPECT_TRUE(body_waits(row(load, "setp.eq.s32 %p2, %r2, 0; selp.b32 %r4, 8, %r4, %p2;")));
  EXPECT_TRUE(body_waits(row(load, "shfl.sync.idx.b32 %r4, %r2, 0, 31, -1;")));
  EXPECT_TRUE(body_waits(row(load, "mov.u32 %r4, %clock;")));
  EXPECT_TRUE(body_waits(row(load, "st.local.u32 [%rd3], %r2; ld.local.u32 %r4, [%rd3];")));
  // One place again and again may be a wait with a limit; so may a row again and again.
  EXPECT_TRUE(body_waits("L: " + load + " add.s32 %r4, %r4, -4; setp.ne.s32 %p1, %r4, 0; @%p1 bra L; ret;"));
  EXPECT_TRUE(body_waits("K: mov.u64 %rd4, %rd2; mov.u32 %r4, %r3; L: " + load +
                         " add.u64 %rd4, %rd4, 4; add.s32 %r4, %r4, -4; setp.ne.s32 %p1, %r4, 0; @%p1 bra L; "
                         "add.s32 %r5, %r5, -4; setp.ne.s32 %p2, %r5, 0; @%p2 bra K; ret;"));
}

TEST(Waiting, SeesCalledFunctions) {
  const auto calling = [](const std::string& callee, const std::string& body) {
    const std::string text = kernel_text(body);
    const size_t at = text.find(".visible");
    return waits(Kernel(text.substr(0, at) +
                            ".func (.param .b32 r) f() { .reg .b32 %r<9>; .reg .b64 %rd<9>; " + callee +
                            " st.param.b32 [r], %r1; ret; }\n" + text.substr(at),
                        "k"))
        .has_value();
  };
  const std::string call =
      "L: { .param .b32 v; call (v), f; ld.param.b32 %r1, [v]; } setp.eq.s32 %p1, %r1, 0; ";
  EXPECT_TRUE(calling("atom.global.cas.b32 %r1, [%rd1], 0, 1;", call + "@%p1 bra L; ret;"));
  EXPECT_TRUE(calling("ld.volatile.global.u32 %r1, [%rd1];", call + "@%p1 bra L; ret;"));
  EXPECT_TRUE(calling("ld.global.u32 %r1, [%rd1];", call + "@%p1 bra L; ret;"));
  EXPECT_FALSE(calling("ld.global.u32 %r1, [%rd1];", call + "@%p2 bra L; ret;"));
  EXPECT_FALSE(calling("atom.global.add.u32 %r1, [%rd1], 1;", call + "@%p2 bra L; ret;"));
}

// A thread before its launch may wait for the child of another thread: position proves nothing.
TEST(Waiting, BeforeTheLaunchIsWaitingToo) {
  EXPECT_TRUE(
      body_waits("L: atom.global.add.u32 %r1, [%rd1], 0; setp.ne.u32 %p1, %r1, %r2; @%p1 bra L; "
                 "st.global.u32 [%rd2], %r2; ret;"));
}

// A loop that nothing leads to never runs; the same loop waits where control comes to it.
TEST(Waiting, NeedsALoopThatRuns) {
  const std::string loop = "L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;";
  EXPECT_TRUE(body_waits(loop));
  EXPECT_TRUE(body_waits("@%p2 ret; " + loop));
  EXPECT_FALSE(body_waits("ret; " + loop));
  EXPECT_TRUE(body_waits("brx.idx %r2, NOWHERE; " + loop));  // it may lead anywhere
}

TEST(LoopTermination, IsPrinted) {
  const Kernel k(fixture("loops.ptx"), "_Z9lock_eachPiS_i");
  EXPECT_THAT(print_loop_termination(k.module, k.facts->flow, k.facts->data),
              testing::MatchesRegex("the loop at line [0-9]+: unknown\nthe loop at line [0-9]+: unknown\n"));
  const Kernel u(fixture("loops.ptx"), "_Z5unitePiPKiS1_");
  EXPECT_THAT(print_loop_termination(u.module, u.facts->flow, u.facts->data),
              HasSubstr(": ends by itself\n"));
}

}  // namespace
}  // namespace klap::test
