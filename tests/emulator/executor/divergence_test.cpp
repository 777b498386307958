// Lanes that take different ways, and where they come together again.
#include <gtest/gtest.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

constexpr const char* kDiamond = R"(
and.b32 %r10, %r4, 1;
setp.eq.u32 %p1, %r10, 0;
@%p1 bra EVEN;
mov.u32 %r11, 100;
bra JOIN;
EVEN:
mov.u32 %r11, 200;
JOIN:
add.u32 %r11, %r11, %r4;
activemask.b32 %r12;
st.global.u32 [%d4], %r11;
add.u64 %d6, %d1, %d5;
st.global.u32 [%d6], %r12;
)";

TEST(Divergence, BothSidesOfABranchRunAndMeet) {
  Program program(kernel("f", kDiamond));
  uint64_t out = program.zeros(32), masks = program.zeros(32);
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {out, masks}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  auto seen = program.words(masks, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(values[lane], (lane % 2 == 0 ? 200 : 100) + lane);
    EXPECT_EQ(seen[lane], 0xffffffff);
  }
}

// Collatz-like loops: the outer one runs lane times, the inner one as often as its number says.
constexpr const char* kNested = R"(
mov.u32 %r10, 0;
mov.u32 %r11, 0;
OUTER:
setp.ge.u32 %p1, %r10, %r4;
@%p1 bra DONE;
mul.lo.u32 %r12, %r10, %r3;
and.b32 %r12, %r12, 7;
INNER:
setp.eq.u32 %p2, %r12, 0;
@%p2 bra NEXT;
mad.lo.u32 %r11, %r11, 3, %r12;
sub.u32 %r12, %r12, 1;
bra INNER;
NEXT:
add.u32 %r10, %r10, 1;
bra OUTER;
DONE:
activemask.b32 %r13;
st.global.u32 [%d4], %r11;
add.u64 %d6, %d1, %d5;
st.global.u32 [%d6], %r13;
)";

uint32_t nested(uint32_t thread, uint32_t lane) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < lane; ++i)
    for (uint32_t j = i * thread & 7; j != 0; --j) result = result * 3 + j;
  return result;
}

class EverySchedule : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(Executor, EverySchedule, testing::ValuesIn(kAllSchedules), ScheduleName{});

TEST_P(EverySchedule, NestedLoopsOfDifferentLengths) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Program program(kernel("f", kNested), with(GetParam(), seed));
    uint64_t out = program.zeros(300), masks = program.zeros(300);
    auto values = program.result("f", {3, 1, 1}, {100, 1, 1}, {out, masks}, 300);
    EXPECT_EQ(program.grids[0]->error, "");
    for (uint32_t i = 0; i < 300; ++i) EXPECT_EQ(values[i], nested(i, i % 100 % 32)) << i;
  }
}

TEST(Divergence, LanesOfALoopMeetBehindIt) {
  Program program(kernel("f", kNested));
  uint64_t out = program.zeros(32), masks = program.zeros(32);
  program.result("f", {1, 1, 1}, {32, 1, 1}, {out, masks}, 32);
  EXPECT_EQ(program.words(masks, 32), std::vector<uint32_t>(32, 0xffffffff));
}

TEST(Divergence, RandomSchedulesKeepLanesApartToo) {
  bool apart = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(kernel("f", kDiamond), with(ScheduleKind::Random, seed));
    uint64_t out = program.zeros(32), masks = program.zeros(32);
    program.result("f", {1, 1, 1}, {32, 1, 1}, {out, masks}, 32);
    apart = apart || program.words(masks, 1)[0] != 0xffffffff;
  }
  EXPECT_TRUE(apart);
}

TEST_P(EverySchedule, ExitedLanesAreGone) {
  Program program(kernel("f", R"(
setp.lt.u32 %p1, %r4, 10;
@%p1 exit;
setp.ge.u32 %p1, %r4, 20;
@%p1 bra END;
st.global.u32 [%d4], 7;
END:
)"),
                  with(GetParam()));
  auto values = program.result("f", {1, 1, 1}, {64, 1, 1}, {program.zeros(64)}, 64);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i % 32 >= 10 && i % 32 < 20 ? 7 : 0) << i;
}

TEST_P(EverySchedule, IndexedBranch) {
  Program program(kernel("f", R"(
ts: .branchtargets L0, L1, L2;
and.b32 %r10, %r4, 3;
min.u32 %r10, %r10, 2;
brx.idx %r10, ts;
L0:
mov.u32 %r11, 10;
bra OUT;
L1:
mov.u32 %r11, 11;
bra OUT;
L2:
mov.u32 %r11, 12;
OUT:
st.global.u32 [%d4], %r11;
)"),
                  with(GetParam()));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], 10 + std::min(i % 4, 2u)) << i;
}

TEST_P(EverySchedule, PredicatesGuardEveryKindOfInstruction) {
  Program program(kernel("f", R"(
and.b32 %r10, %r4, 3;
setp.eq.u32 %p1, %r10, 1;
mov.u32 %r11, 5;
@%p1 mov.u32 %r11, 6;
@!%p1 st.global.u32 [%d4], %r11;
@%p1 atom.global.add.u32 %r12, [%d4], 9;
@%p1 ld.global.u32 %r11, [%d4];
@%p1 st.global.u32 [%d4], %r11;
)"),
                  with(GetParam()));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], i % 4 == 1 ? 9 : 5) << i;
}

}  // namespace
}  // namespace klap::emulator::test
