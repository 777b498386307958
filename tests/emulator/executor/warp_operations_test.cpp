// Shuffles, votes, matches, reductions: against a direct model, in divergent code, and with wrong masks.
#include <gtest/gtest.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

// One warp, for a list of b and c: the value in the low half, the predicate above.
struct ShuffleCase {
  const char* mode;
  uint32_t b, c;
};

// The formula of the PTX ISA manual.
uint32_t model(const ShuffleCase& s, int lane) {
  int bval = static_cast<int>(s.b & 31), cval = static_cast<int>(s.c & 31),
      mask = static_cast<int>(s.c >> 8 & 31);
  int max_lane = (lane & mask) | (cval & ~mask), min_lane = lane & mask, j = 0;
  bool p = false;
  std::string mode = s.mode;
  if (mode == "up") p = (j = lane - bval) >= max_lane;
  if (mode == "down") p = (j = lane + bval) <= max_lane;
  if (mode == "bfly") p = (j = lane ^ bval) <= max_lane;
  if (mode == "idx") p = (j = min_lane | (bval & ~mask)) <= max_lane;
  if (!p) j = lane;
  return static_cast<uint32_t>(1000 + j) | (p ? 0x10000u : 0u);
}

TEST(WarpOperations, ShuffleFollowsTheManual) {
  for (const ShuffleCase& s : std::vector<ShuffleCase>{{"up", 1, 0},
                                                       {"up", 5, 0},
                                                       {"up", 3, 0x1800},
                                                       {"down", 1, 31},
                                                       {"down", 16, 31},
                                                       {"down", 2, 0x181f},
                                                       {"bfly", 1, 31},
                                                       {"bfly", 16, 31},
                                                       {"bfly", 9, 0x1c1f},
                                                       {"idx", 0, 31},
                                                       {"idx", 37, 31},
                                                       {"idx", 5, 0x181f},
                                                       {"idx", 20, 7}}) {
    Program program(kernel("f", "add.u32 %r10, %r4, 1000;\nshfl.sync." + std::string(s.mode) +
                                    ".b32 %r11|%p1, %r10, " + std::to_string(s.b) + ", " +
                                    std::to_string(s.c) + R"(, -1;
selp.u32 %r12, 65536, 0, %p1;
or.b32 %r12, %r12, %r11;
st.global.u32 [%d4], %r12;
)"));
    auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
    EXPECT_EQ(program.grids[0]->error, "");
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(values[static_cast<size_t>(lane)], model(s, lane))
          << s.mode << " " << s.b << " " << s.c << " " << lane;
  }
}

class WarpOperationsInEverySchedule : public testing::TestWithParam<ScheduleKind> {
 protected:
  std::vector<uint32_t> run(const std::string& body) {
    std::vector<uint32_t> first;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Program program(kernel("f", body), with(GetParam(), seed));
      auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
      EXPECT_EQ(program.grids[0]->error, "");
      if (seed == 1) first = values;
      EXPECT_EQ(values, first);
    }
    return first;
  }
};
INSTANTIATE_TEST_SUITE_P(Executor, WarpOperationsInEverySchedule, testing::ValuesIn(kAllSchedules),
                         ScheduleName{});

// The halves of a warp shuffle by themselves, at different instructions and in loops of different lengths.
TEST_P(WarpOperationsInEverySchedule, ShuffleInDivergentCode) {
  auto values = run(R"(
setp.lt.u32 %p1, %r4, 16;
mov.u32 %r10, %r4;
@%p1 bra LOW;
mov.u32 %r11, 0;
HIGH:
shfl.sync.bfly.b32 %r12, %r10, 1, 31, 0xffff0000;
add.u32 %r10, %r12, 1;
add.u32 %r11, %r11, 1;
setp.lt.u32 %p2, %r11, 3;
@%p2 bra HIGH;
bra OUT;
LOW:
shfl.sync.down.b32 %r12, %r10, 1, 31, 0x0000ffff;
mov.u32 %r10, %r12;
OUT:
st.global.u32 [%d4], %r10;
)");
  for (uint32_t i = 0; i < 15; ++i) EXPECT_EQ(values[i], i + 1);
  for (uint32_t i = 16; i < 32; ++i) EXPECT_EQ(values[i], (i ^ 1) + 3);
}

// The same operation at two places: lanes of both take part in one.
TEST_P(WarpOperationsInEverySchedule, PlacesMayDiffer) {
  auto values = run(R"(
and.b32 %r9, %r4, 1;
setp.eq.u32 %p1, %r9, 0;
mul.lo.u32 %r10, %r4, 10;
@%p1 bra EVEN;
shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1;
add.u32 %r11, %r11, 1;
bra OUT;
EVEN:
shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1;
add.u32 %r11, %r11, 2;
OUT:
bar.warp.sync -1;
st.global.u32 [%d4], %r11;
)");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], (i ^ 1) * 10 + (i % 2 == 0 ? 2 : 1));
}

TEST_P(WarpOperationsInEverySchedule, VotesMatchesAndReductions) {
  auto values = run(R"(
and.b32 %r10, %r4, 3;
setp.eq.u32 %p1, %r10, 1;
vote.sync.ballot.b32 %r11, %p1, -1;
vote.sync.ballot.b32 %r12, !%p1, -1;
vote.sync.any.pred %p2, %p1, -1;
vote.sync.all.pred %p3, %p1, -1;
vote.sync.uni.pred %p4, %p1, -1;
match.any.sync.b32 %r13, %r10, -1;
match.all.sync.b32 %r14|%p5, %r10, -1;
redux.sync.add.u32 %r15, %r10, -1;
sub.u32 %r16, %r4, 9;
redux.sync.min.s32 %r17, %r16, -1;
redux.sync.max.u32 %r18, %r16, -1;
redux.sync.xor.b32 %r19, %r4, %r13;
selp.u32 %r20, 1, 0, %p2;
selp.u32 %r21, 2, 0, %p3;
selp.u32 %r22, 4, 0, %p4;
selp.u32 %r23, 8, 0, %p5;
add.u32 %r20, %r20, %r21;
add.u32 %r20, %r20, %r22;
add.u32 %r20, %r20, %r23;
add.u32 %r20, %r20, %r14;
st.global.u32 [%d4], %r11;
setp.eq.u32 %p6, %r4, 1;
@%p6 st.global.u32 [%d4], %r12;
setp.eq.u32 %p6, %r4, 2;
@%p6 st.global.u32 [%d4], %r13;
setp.eq.u32 %p6, %r4, 3;
@%p6 st.global.u32 [%d4], %r15;
setp.eq.u32 %p6, %r4, 4;
@%p6 st.global.u32 [%d4], %r17;
setp.eq.u32 %p6, %r4, 5;
@%p6 st.global.u32 [%d4], %r18;
setp.eq.u32 %p6, %r4, 6;
@%p6 st.global.u32 [%d4], %r19;
setp.eq.u32 %p6, %r4, 7;
@%p6 st.global.u32 [%d4], %r20;
)");
  EXPECT_EQ(values[0], 0x22222222);
  EXPECT_EQ(values[1], 0xdddddddd);
  EXPECT_EQ(values[2], 0x44444444);
  EXPECT_EQ(values[3], 48);
  EXPECT_EQ(values[4], static_cast<uint32_t>(-9));
  EXPECT_EQ(values[5], 0xffffffff);
  EXPECT_EQ(values[6], 2u ^ 6u ^ 10u ^ 14u ^ 18u ^ 22u ^ 26u ^ 30u);
  EXPECT_EQ(values[7], 1);
}

TEST_P(WarpOperationsInEverySchedule, ExitedLanesAreNotWaitedFor) {
  auto values = run(R"(
setp.ge.u32 %p1, %r4, 20;
@%p1 exit;
setp.ge.u32 %p1, %r4, 10;
@%p1 bra LATE;
vote.sync.ballot.b32 %r10, 1, -1;
st.global.u32 [%d4], %r10;
ret;
LATE:
mov.u32 %r11, 0;
SPIN:
add.u32 %r11, %r11, 1;
setp.lt.u32 %p2, %r11, 200;
@%p2 bra SPIN;
)");
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(values[i], 0x3ffu);
}

std::string error_of(const std::string& body) {
  Program program(kernel("f", body));
  program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  return program.grids[0]->error;
}

TEST(WarpOperations, ALaneOutsideItsMaskIsAnError) {
  std::string error = error_of("bar.warp.sync 0xff;");
  EXPECT_NE(error.find("the thread is not in the member mask 0xff"), std::string::npos) << error;
  EXPECT_NE(error.find("thread (8, 0, 0)"), std::string::npos) << error;
}

TEST(WarpOperations, MasksThatDisagreeAreAnError) {
  std::string error = error_of(R"(
setp.lt.u32 %p1, %r4, 16;
@%p1 bra LOW;
bar.warp.sync -1;
bra OUT;
LOW:
bar.warp.sync 0x0001ffff;
OUT:
)");
  EXPECT_NE(error.find("wait at different operations"), std::string::npos) << error;
}

TEST(WarpOperations, AMissingLaneIsADeadlock) {
  Program program(kernel("f", R"(
setp.lt.u32 %p1, %r4, 16;
@%p1 bra LOW;
bar.warp.sync -1;
bra OUT;
LOW:
bar.sync 0;
OUT:
)"));
  program.start("f", {1, 1, 1}, {32, 1, 1}, {0});
  EXPECT_EQ(program.run(), Executor::Outcome::Deadlock);
  std::string report = program.executor.deadlock_report();
  EXPECT_NE(report.find("waits at an operation of the lanes 0xffffffff; not there: lanes 0xffff\n"),
            std::string::npos)
      << report;
}

}  // namespace
}  // namespace klap::emulator::test
