// Lanes that reach a barrier or a `.sync` operation after others have left.
#include "analysis/synchronisation/early_exit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;

Answer answer(const std::string& body) { return early_exit(*kernel(body).facts).answer; }

const std::string kPastThread = "mov.u32 %r9, %tid.x; ld.param.u32 %r8, [n]; setp.ge.u32 %p1, %r9, %r8; ";
const std::string kPastBlock = "mov.u32 %r9, %ctaid.x; ld.param.u32 %r8, [n]; setp.ge.u32 %p1, %r9, %r8; ";
const std::string kLoad = "ld.param.u64 %rd9, [p]; ld.global.u32 %r9, [%rd9]; ";
const std::string kCompare = "setp.ge.u32 %p1, %r9, 1; ";
// Memory that the kernel writes may be different for each thread that looks.
const std::string kPastMemory = "st.global.u32 [%rd1], %r1; " + kLoad + kCompare;
const std::string kShuffle = "shfl.sync.down.b32 %r1, %r2, 1, 31, -1; ";

TEST(EarlyExit, WithoutWaiting) {
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 exit; st.global.u32 [%rd1], %r1; ret;"));
  EXPECT_EQ(Answer::No, answer(""));
}

TEST(EarlyExit, BeforeABarrier) {
  for (const char* leave : {"@%p1 bra E; bar.sync 0; E: ret;", "@%p1 exit; bar.sync 0; ret;",
                            "@%p1 ret; bar.sync 0;", "@!%p1 bra L; ret; L: bar.sync 0; ret;"}) {
    EXPECT_EQ(Answer::Yes, answer(kPastThread + leave)) << leave;
    EXPECT_EQ(Answer::No, answer(kPastBlock + leave)) << leave;
    EXPECT_EQ(Answer::Unknown, answer(kPastMemory + leave)) << leave;
    EXPECT_EQ(Answer::No, answer(kLoad + kCompare + leave)) << leave;
  }
}

TEST(EarlyExit, AfterTheLastBarrierOrAround) {
  EXPECT_EQ(Answer::No, answer("bar.sync 0; " + kPastThread + "@%p1 exit; st.global.u32 [%rd1], %r1; ret;"));
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 bra L; st.global.u32 [%rd1], %r1; L: bar.sync 0; ret;"));
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 bra L; bar.sync 0; ret; L: bar.sync 0; ret;"));
}

TEST(EarlyExit, BeforeTheLastBarrier) {
  const std::string some = "vote.sync.ballot.b32 %r1, %p1, %r2; ", end = "E: bar.sync 0; ret;";
  // Lanes that are not named, in a branch that some threads take.
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 bra E; " + some + end));
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 bra E; " + kShuffle + end));
  EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 bra E; A: " + some + "@%p1 bra A; " + end));
  // The waits behind the last barrier count by themselves.
  EXPECT_EQ(Answer::No,
            answer(kPastThread + "@%p1 bra E; " + kShuffle + "E: bar.sync 0; " + kShuffle + "ret;"));
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 bra E; " + kShuffle + "E: bar.sync 0; " + some + "ret;"));
  EXPECT_NE(Answer::No, answer(kPastThread + "bar.sync 0; @%p1 exit; " + kShuffle + "ret;"));
  // A way out leads around the barrier, or the barrier does not hold all threads.
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 bra E; " + some + "@%p2 exit; " + end));
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 bra E; " + some + "E: @%p2 bar.sync 0; ret;"));
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 bra E; " + some + "E: bar.sync 0, 64; ret;"));
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 exit; " + some + "bar.sync 0; ret;"));
  // The wait may come before a barrier, or before an exit.
  EXPECT_NE(Answer::No, answer(kPastThread + "A: " + kShuffle + "@%p1 bra F; bar.sync 0; bra A; F: ret;"));
}

TEST(EarlyExit, TrapIsNoExit) { EXPECT_EQ(Answer::No, answer(kPastThread + "@%p1 trap; bar.sync 0; ret;")); }

TEST(EarlyExit, OfWarpOperations) {
  EXPECT_EQ(Answer::Yes, answer(kPastThread + "@%p1 bra E; " + kShuffle + "E: ret;"));
  EXPECT_EQ(Answer::No, answer(kShuffle + kPastThread + "@%p1 exit; ret;"));
  // A condition that may divide the block between its warps.
  EXPECT_EQ(Answer::Unknown,
            answer("mov.u32 %r9, %tid.x; setp.ge.u32 %p1, %r9, 64; @%p1 bra E; " + kShuffle + "E: ret;"));
  EXPECT_EQ(Answer::Yes,
            answer("mov.u32 %r9, %tid.x; setp.ge.u32 %p1, %r9, 70; @%p1 bra E; " + kShuffle + "E: ret;"));
  EXPECT_EQ(Answer::Yes, answer(kPastThread + "@%p1 bra E; bar.warp.sync 0xffffffff; E: ret;"));
}

// Whole warps may have more to do together than others, as when the first one adds up what all have found.
Answer skipped(const std::string& condition) {
  const std::string body =
      kShuffle + "mov.u32 %r9, %tid.x; " + condition + "@%p1 bra E; " + kShuffle + "E: ret;";
  const auto parsed = kernel(body);
  EXPECT_NE(Answer::No, early_exit(*parsed.facts).answer) << "rows may end within a warp";
  return early_exit(*parsed.facts, true).answer;
}

TEST(EarlyExit, OfWarpOperationsThatWholeWarpsSkip) {
  for (const char* whole :
       {"setp.gt.u32 %p1, %r9, 31; ", "setp.ge.s32 %p1, %r9, 64; ", "setp.lt.u32 %p1, %r9, 32; ",
        "setp.le.u32 %p1, %r9, 95; ", "setp.lt.s32 %p1, %r9, -32; ",
        "shr.u32 %r8, %r9, 5; setp.ne.s32 %p1, %r8, 0; ", "shr.u32 %r8, %r9, 6; setp.eq.u32 %p1, %r8, 1; ",
        "add.u32 %r9, %r9, 32; setp.gt.u32 %p1, %r9, 63; ",
        "and.b32 %r8, %r9, 63; setp.gt.u32 %p1, %r8, 31; ",
        "cvt.u64.u32 %rd1, %r9; setp.hs.u64 %p1, %rd1, 32; ",
        "ld.param.u32 %r8, [n]; shl.b32 %r7, %r8, 5; setp.ge.s32 %p1, %r9, %r7; "}) {
    EXPECT_EQ(Answer::No, skipped(whole)) << whole;
  }
  for (const char* divided :
       {"setp.gt.u32 %p1, %r9, 32; ", "setp.ge.u32 %p1, %r9, 31; ", "setp.eq.u32 %p1, %r9, 32; ",
        "add.u32 %r9, %r9, 1; setp.gt.u32 %p1, %r9, 31; ", "shr.u32 %r8, %r9, 4; setp.ne.s32 %p1, %r8, 0; ",
        "shl.b32 %r8, %r9, 1; setp.ge.u32 %p1, %r8, 32; ", "setp.gt.f32 %p1, %r9, 31; ",
        "and.b32 %r8, %r9, 63; setp.gt.u32 %p1, %r8, 47; ",
        "and.b32 %r8, %r9, 48; setp.ge.u32 %p1, %r8, 32; ",
        "ld.param.u32 %r8, [n]; shl.b32 %r7, %r8, 4; setp.ge.s32 %p1, %r9, %r7; ",
        "mov.u32 %r8, %laneid; shl.b32 %r7, %r8, 5; setp.ge.s32 %p1, %r9, %r7; ",
        "setp.eq.u32 %p2, %r9, 40; @%p2 mov.u32 %r9, 7; setp.gt.u32 %p1, %r9, 31; "}) {
    EXPECT_NE(Answer::No, skipped(divided)) << divided;
  }
  EXPECT_NE(Answer::No,
            early_exit(*kernel("mov.u32 %r9, %tid.x; setp.gt.u32 %p1, %r9, 31; @%p1 bra E; bar.sync 0; "
                               "E: ret;")
                            .facts,
                       true)
                .answer)
      << "a block is not a warp";
}

// The number of a warp's lanes has a name, and a comparison two sides.
TEST(EarlyExit, OfWarpOperationsThatWholeWarpsSkipByName) {
  const std::string named = "mov.u32 %r8, WARP_SZ; ";
  for (const char* whole :
       {"setp.le.u32 %p1, %r8, %r9; ", "setp.ge.u32 %p1, %r9, WARP_SZ; ", "setp.lt.u32 %p1, %r9, %r8; ",
        "setp.gt.s32 %p1, %r8, %r9; ", "setp.lt.u32 %p1, 31, %r9; ", "setp.ge.u32 %p1, 63, %r9; ",
        "div.u32 %r7, %r9, %r8; setp.ne.s32 %p1, %r7, 0; ", "div.s32 %r7, %r9, 32; setp.lt.s32 %p1, %r7, 2; ",
        "div.u32 %r7, %r9, %r8; rem.u32 %r6, %r7, 2; setp.eq.u32 %p1, %r6, 1; ",
        "rem.u32 %r7, %r9, %r8; sub.u32 %r6, %r9, %r7; setp.eq.u32 %p1, %r6, 32; "}) {
    EXPECT_EQ(Answer::No, skipped(named + whole)) << whole;
  }
  for (const char* divided :
       {"setp.lt.u32 %p1, %r8, %r9; ", "setp.le.u32 %p1, %r9, %r8; ", "setp.ge.u32 %p1, %r8, %r9; ",
        "setp.eq.u32 %p1, %r8, %r9; ", "setp.le.u32 %p1, 31, %r9; ",
        "rem.u32 %r7, %r9, %r8; setp.ne.s32 %p1, %r7, 0; ",
        "shr.u32 %r7, %r8, 1; setp.le.u32 %p1, %r7, %r9; ", "div.u32 %r7, %r9, 33; setp.ne.s32 %p1, %r7, 0; ",
        "div.u32 %r7, %r9, 48; setp.ne.s32 %p1, %r7, 0; "}) {
    EXPECT_NE(Answer::No, skipped(named + divided)) << divided;
  }
}

bool holds(const std::string& relation, int64_t a, int64_t b) {
  if (relation == "lt") return a < b;
  if (relation == "le") return a <= b;
  return relation == "gt" ? a > b : a >= b;
}

bool divides_a_warp(const std::function<bool(uint32_t thread)>& passes) {
  for (uint32_t t = 0; t < 1024; ++t) {
    if (passes(t) != passes(t / 32 * 32)) return true;
  }
  return false;
}

// By all threads of a block: no warp that a comparison divides is taken for whole.
TEST(EarlyExit, OfWarpOperationsThatComparisonsDivide) {
  struct Place {
    const char* text;
    std::function<uint32_t(uint32_t)> of;
  };
  const std::vector<Place> places = {
      {"mov.u32 %r8, %r9;", [](uint32_t t) { return t; }},
      {"add.u32 %r8, %r9, 48;", [](uint32_t t) { return t + 48; }},
      {"sub.u32 %r8, %r9, 64;", [](uint32_t t) { return t - 64; }},
      {"rem.u32 %r8, %r9, 96;", [](uint32_t t) { return t % 96; }},
      {"and.b32 %r8, %r9, 992;", [](uint32_t t) { return t & 992; }},
      {"div.u32 %r8, %r9, 64; mul.lo.u32 %r8, %r8, 48;", [](uint32_t t) { return t / 64 * 48; }}};
  uint32_t whole = 0;
  for (const Place& place : places) {
    for (const std::string relation : {"lt", "le", "gt", "ge"}) {
      for (const int32_t bound :
           {-33, -32, -1, 0, 1, 31, 32, 33, 47, 48, 63, 64, 80, 95, 96, 127, 0x7fffffff}) {
        for (const bool swapped : {false, true}) {
          const std::string number = std::to_string(bound);
          const std::string compare = fmt::format("{} setp.{}.s32 %p1, {}, {}; ", place.text, relation,
                                                  swapped ? number : "%r8", swapped ? "%r8" : number);
          if (skipped(compare) != Answer::No) continue;
          ++whole;
          EXPECT_FALSE(divides_a_warp([&](uint32_t thread) {
            const auto value = static_cast<int32_t>(place.of(thread));
            return swapped ? holds(relation, bound, value) : holds(relation, value, bound);
          })) << compare;
        }
      }
    }
  }
  EXPECT_GT(whole, 100u);
}

// Two conditions of a warp are one.
TEST(EarlyExit, OfWarpOperationsThatWholeWarpsSkipByTwoConditions) {
  const std::string first = "setp.gt.u32 %p2, %r9, 31; ";
  const std::string second = ".shared .u32 x; bar.sync 0; ld.shared.u32 %r8, [x]; setp.lt.s32 %p3, %r8, 1; ";
  const std::string apart = "setp.gt.u32 %p3, %r9, 7; ";
  for (const char* both : {"or.pred %p1, %p2, %p3; ", "and.pred %p1, %p2, %p3; ", "xor.pred %p1, %p3, %p2; ",
                           "not.pred %p4, %p2; and.pred %p1, %p4, %p3; ",
                           "setp.gt.or.u32 %p1, %r9, 63, %p3; ", "setp.lt.and.s32 %p1|%p4, %r9, 64, !%p3; ",
                           "selp.b32 %r7, 1, 0, %p2; selp.b32 %r6, %r7, 0, %p3; setp.ne.s32 %p1, %r6, 0; ",
                           "mov.pred %p1, %p2; @%p3 mov.pred %p1, %p3; "}) {
    EXPECT_EQ(Answer::No, skipped(first + second + both)) << both;
    EXPECT_NE(Answer::No, skipped(first + apart + both)) << both;
  }
  EXPECT_NE(Answer::No, skipped(first + second + "setp.gt.or.u32 %p1, %r9, 62, %p3; "));
}

Answer answer(const std::string& body, MayExit may_exit) {
  return early_exit(*kernel(body).facts, true, may_exit).answer;
}

TEST(EarlyExit, OfWholeWarpsBeforeAPlainBarrier) {
  const std::string by_warp =
      "mov.u32 %r9, %tid.x; ld.param.u32 %r8, [n]; shr.u32 %r7, %r9, 5; "
      "setp.ge.u32 %p1, %r7, %r8; ";
  const std::string signed_division =
      "mov.u32 %r9, %tid.x; ld.param.u32 %r8, [n]; shr.s32 %r6, %r9, 31; "
      "shr.u32 %r5, %r6, 27; add.s32 %r4, %r9, %r5; shr.s32 %r7, %r4, 5; "
      "setp.ge.s32 %p1, %r7, %r8; ";
  for (const std::string& whole : {by_warp, signed_division}) {
    for (const char* leave : {"@%p1 bra E; bar.sync 0; E: ret;", "@%p1 exit; barrier.sync.aligned 0; ret;"}) {
      EXPECT_NE(Answer::No, answer(whole + leave, MayExit::Nobody)) << whole << leave;
      EXPECT_EQ(Answer::No, answer(whole + leave, MayExit::Warps)) << whole << leave;
    }
    EXPECT_NE(Answer::No,
              early_exit(*kernel(whole + "@%p1 exit; bar.sync 0; ret;").facts, false, MayExit::Warps).answer)
        << "rows may end within a warp";
  }
  EXPECT_NE(Answer::No, answer(kPastThread + "@%p1 exit; bar.sync 0; ret;", MayExit::Warps));
  for (const char* other : {"bar.sync 1;", "bar.sync 0, 64;", "bar.red.or.pred %p2, 0, %p3;",
                            "bar.arrive 0, 64;", "bar.sync %r1;"}) {
    EXPECT_NE(Answer::No, answer(by_warp + "@%p1 exit; bar.sync 0; " + other + " ret;", MayExit::Warps))
        << other;
  }
}

TEST(EarlyExit, OfOperationsThatMayBeForMoreThanAWarp) {
  const std::string whole =
      "mov.u32 %r9, %tid.x; ld.param.u32 %r8, [n]; shr.u32 %r7, %r9, 5; setp.ge.u32 %p1, %r7, %r8; @%p1 "
      "exit; ";
  for (const char* operation :
       {"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;"}) {
    EXPECT_EQ(Answer::No, answer(whole + operation + " ret;", MayExit::Nobody)) << operation;
  }
  for (const char* operation : {"wgmma.fence.sync.aligned;", "setmaxnreg.inc.sync.aligned.u32 40;",
                                "frobnicate.sync.b32 %r1, %r2;"}) {
    EXPECT_NE(Answer::No, answer(whole + operation + " ret;", MayExit::Nobody)) << operation;
  }
}

// Exits by what is loaded, before a warp operation.
TEST(EarlyExit, OfWarpsByWhatTheyLoad) {
  const auto after = [](const std::string& load, const std::string& store = "st.global.u32 [%rd1], %r1;") {
    return answer(load + kCompare + "@%p1 bra E; " + kShuffle + store + " E: ret;");
  };
  const std::string address = "ld.param.u64 %rd9, [p]; ";
  EXPECT_EQ(Answer::No, after(kLoad));
  EXPECT_EQ(Answer::No, after(address + "bar.sync 0; ld.global.u32 %r9, [%rd9]; "));
  EXPECT_EQ(Answer::No, after(".shared .u32 x; bar.sync 0; ld.shared.u32 %r9, [x]; "));
  EXPECT_EQ(Answer::No, after(address + "atom.global.add.u32 %r3, [%rd9], 1; ld.global.u32 %r9, [%rd9]; "))
      << "a relaxed atomic alone orders nothing";
  for (const char* before :
       {"atom.global.add.u32 %r3, [%rd9], 1; membar.gl; ", "ld.acquire.gpu.u32 %r3, [%rd9]; ",
        "atom.global.add.u32 %r3, [%rd9], 1; fence.acq_rel.gpu; bar.sync 0; membar.cta; "}) {
    EXPECT_EQ(Answer::No, after(address + before + "bar.sync 0; ld.global.u32 %r9, [%rd9]; "))
        << "before a barrier of all: " << before;
  }
  EXPECT_NE(Answer::No, after(address + "mov.u32 %r3, %tid.x; mad.wide.u32 %rd8, %r3, 4, %rd9; "
                                        "ld.global.u32 %r9, [%rd8]; "));
  for (const char* load :
       {"ld.volatile.global.u32 %r9, [%rd9]; ", "ld.relaxed.gpu.global.u32 %r9, [%rd9]; ",
        "ld.acquire.gpu.u32 %r3, [%rd9]; ld.global.u32 %r9, [%rd9]; ",
        "atom.global.add.u32 %r3, [%rd9], 1; membar.gl; ld.global.u32 %r9, [%rd9]; ",
        "atom.acquire.gpu.global.add.u32 %r3, [%rd9], 1; ld.global.u32 %r9, [%rd9]; ",
        "atom.global.add.u32 %r3, [%rd9], 1; bar.sync 0; atom.global.add.u32 %r3, [%rd9], 1; membar.gl; "
        "ld.global.u32 %r9, [%rd9]; ",
        "bar.warp.sync -1; ld.global.u32 %r9, [%rd9]; ",
        "bar.sync 0, 64; bar.sync 0; ld.global.u32 %r9, [%rd9]; ",
        "call.uni unknown; bar.sync 0; ld.global.u32 %r9, [%rd9]; ",
        "bar.sync 0, 64; ld.global.u32 %r9, [%rd9]; ", "call.uni unknown; ld.global.u32 %r9, [%rd9]; ",
        "mov.u32 %r3, %tid.x; setp.eq.u32 %p5, %r3, 0; @%p5 bar.sync 0; ld.global.u32 %r9, [%rd9]; ",
        "mov.u32 %r3, 0; L: bar.sync 0; ld.global.u32 %r9, [%rd9]; add.u32 %r3, %r3, 1; setp.lt.u32 %p5, "
        "%r3, "
        "4; @%p5 bra L; "}) {
    EXPECT_NE(Answer::No, after(address + load)) << load;
  }
  EXPECT_NE(Answer::No,
            answer(kLoad + kCompare + "@%p1 bra E; bar.sync 0; st.global.u32 [%rd1], %r1; E: ret;"))
      << "a block is not a warp";
}

// Threads that part and come together again in every round.
TEST(EarlyExit, InALoopWithADivergentBranch) {
  const auto loop = [](const std::string& skipped) {
    return answer("ld.param.u32 %r3, [n]; " + kPastThread + "mov.u32 %r2, 0; L: @%p1 bra M; " + skipped +
                  " M: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r3; @%p2 bra L; ret;");
  };
  EXPECT_EQ(Answer::No, loop("st.shared.u32 [%r5], %r1;"));
  EXPECT_EQ(Answer::No, loop("I: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, %r9; @%p3 bra I;"));
  EXPECT_EQ(Answer::Yes, loop("bar.sync 0;"));
  EXPECT_EQ(Answer::Yes, loop("ret;"));
  EXPECT_NE(Answer::No, loop("add.u32 %r2, %r2, 1;"));
}

TEST(EarlyExit, OfOperationsThatNameSomeLanesIsUnknown) {
  EXPECT_EQ(Answer::Unknown, answer("activemask.b32 %r7; shfl.sync.down.b32 %r1, %r2, 1, 31, %r7; ret;"));
  EXPECT_EQ(Answer::Unknown, answer("shfl.sync.down.b32 %r1, %r2, 1, 31, 15; ret;"));
  EXPECT_EQ(Answer::Unknown, answer("bar.sync 1, 64; ret;"));
  EXPECT_EQ(Answer::Unknown, answer("mbarrier.arrive.shared.b64 %rd5, [%rd1]; ret;"));
  EXPECT_EQ(Answer::Unknown, answer("bar.sync 0; brx.idx %r1, unknown_list; ret;"));
}

// A register may hold the mask of all lanes where it is read, and something else elsewhere.
TEST(EarlyExit, OfMasksInRegistersThatHoldOtherThingsToo) {
  const std::string by = "shfl.sync.down.b32 %r1, %r2, 1, 31, %r7; ";
  for (const std::string& full :
       {"mov.u32 %r7, -1; " + by + "mov.u32 %r7, 5; ret;", "mov.u32 %r7, 5; not.b32 %r7, 0; " + by + "ret;",
        "mov.u32 %r7, -1; " + by + "selp.b32 %r7, %r1, %r7, %p1; ret;",
        "selp.b32 %r7, -1, 0xffffffff, %p1; " + by + "ret;",
        "@%p1 bra L; mov.u32 %r7, -1; bra M; L: mov.u32 %r7, 0xffffffff; M: " + by + "ret;"}) {
    EXPECT_EQ(Answer::No, answer(full)) << full;
  }
  for (const std::string& unsure :
       {"mov.u32 %r7, -1; mov.u32 %r7, 15; " + by + "ret;",
        "mov.u32 %r7, -1; @%p1 mov.u32 %r7, 15; " + by + "ret;",
        "mov.u32 %r7, 15; @%p1 mov.u32 %r7, -1; " + by + "ret;", "@%p1 mov.u32 %r7, -1; " + by + "ret;",
        "selp.b32 %r7, -1, 15, %p1; " + by + "ret;",
        "@%p1 bra L; mov.u32 %r7, -1; bra M; L: activemask.b32 %r7; M: " + by + "ret;",
        "mov.u32 %r7, -1; mov.u32 %r6, 0; L: " + by +
            "shr.u32 %r7, %r7, 1; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 4; @%p2 bra L; ret;"}) {
    EXPECT_EQ(Answer::Unknown, answer(unsure)) << unsure;
  }
}

TEST(EarlyExit, InLoops) {
  const std::string loop =
      "mov.u32 %r2, 0; L: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r3; @%p2 bra L; ret;";
  EXPECT_EQ(Answer::No, answer("ld.param.u32 %r3, [n]; " + loop));
  EXPECT_EQ(Answer::Yes, answer("mov.u32 %r3, %tid.x; " + loop));
  const std::string from_memory = "ld.param.u64 %rd9, [p]; ld.global.u32 %r3, [%rd9]; " + loop;
  EXPECT_EQ(Answer::No, answer(from_memory));
  EXPECT_EQ(Answer::Unknown, answer("st.global.u32 [%rd1], %r1; " + from_memory));
}

TEST(EarlyExit, ByCalledFunctions) {
  const auto calling = [](const std::string& callee, const std::string& body) {
    const std::string text = kernel_text(body);
    const size_t at = text.find(".visible");
    return early_exit(
               *Kernel(text.substr(0, at) + ".func f() { " + callee + " ret; }\n" + text.substr(at), "k")
                    .facts)
        .answer;
  };
  EXPECT_EQ(Answer::Unknown, calling("exit;", "call f; bar.sync 0; ret;"));
  EXPECT_EQ(Answer::Unknown, calling("bar.sync 0;", "call f; ret;"));
  EXPECT_EQ(Answer::Unknown, calling("bar.warp.sync -1;", "call f; ret;"));
  EXPECT_EQ(Answer::No, calling("membar.gl;", "call f; bar.sync 0; ret;"));
}

TEST(EarlyExit, IsNamedWithItsPlace) {
  EXPECT_EQ(
      "waits after others have exited: yes: threads may exit by the decision at line 7:6 while others have "
      "still to reach bar.sync (line 8:1)\n",
      print_early_exit(*kernel(kPastThread + "\n@%p1 bra E;\nbar.sync 0;\nE: ret;").facts));
}

// Where lanes may differ because something has synchronised since the last barrier, it is named.
TEST(EarlyExit, IsNamedWithTheFenceThatMatters) {
  const auto detail = [](const std::string& address) {
    return early_exit(*kernel(".shared .u32 x; bar.sync 0; atom.shared.add.u32 %r3, [x], 1; " + address +
                              "\nmembar.gl;\nld.shared.u32 %r9, [%r4];\nadd.u32 %r9, %r9, 1; " + kCompare +
                              "@%p1 bra E;\n" + kShuffle + "E: ret;")
                           .facts)
        .detail;
  };
  const std::string plain =
      "threads may exit by the decision at line 9:52 while others have still to reach shfl.sync.down.b32 "
      "(line 10:1)";
  EXPECT_EQ(plain +
                "; after membar.gl (line 7:1) the lanes of a warp may differ in what they read by "
                "ld.shared.u32 (line 8:1)",
            detail("mov.u32 %r4, x;"));
  EXPECT_EQ(plain, detail("mov.u32 %r4, %tid.x; add.u32 %r4, %r4, x;"));
}

}  // namespace
}  // namespace klap::test
