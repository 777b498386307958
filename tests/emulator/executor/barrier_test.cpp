// The block's barriers.
#include <gtest/gtest.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

class BarrierInEverySchedule : public testing::TestWithParam<ScheduleKind> {
 protected:
  std::vector<uint32_t> run(const std::string& text, Dim3 block, size_t count) {
    program_ = std::make_unique<Program>(text, with(GetParam(), 3));
    auto values = program_->result("f", {1, 1, 1}, block, {program_->zeros(count)}, count);
    EXPECT_EQ(program_->grids[0]->error, "");
    return values;
  }
  std::unique_ptr<Program> program_;
};
INSTANTIATE_TEST_SUITE_P(Executor, BarrierInEverySchedule, testing::ValuesIn(kAllSchedules), ScheduleName{});

// Every thread writes its number into shared memory and reads its mirror's.
TEST_P(BarrierInEverySchedule, OrdersSharedMemory) {
  auto values = run(".shared .align 4 .b8 s[1024];\n" + kernel("f", R"(
mov.u32 %r10, s;
mad.lo.u32 %r11, %r0, 4, %r10;
st.shared.u32 [%r11], %r0;
bar.sync 0;
sub.u32 %r12, %r2, %r0;
mad.lo.u32 %r12, %r12, 4, %r10;
ld.shared.u32 %r13, [%r12+-4];
st.global.u32 [%d4], %r13;
)"),
                    {200, 1, 1}, 200);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(values[i], 199 - i);
}

TEST_P(BarrierInEverySchedule, DoesNotWaitForThreadsThatExited) {
  auto values = run(kernel("f", R"(
rem.u32 %r10, %r0, 3;
setp.eq.u32 %p1, %r10, 0;
@%p1 ret;
setp.ge.u32 %p1, %r0, 96;
@%p1 exit;
bar.sync 0;
st.global.u32 [%d4], 1;
)"),
                    {128, 1, 1}, 128);
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(values[i], i % 3 != 0 && i < 96 ? 1 : 0) << i;
}

TEST_P(BarrierInEverySchedule, TakesLanesOfAWarpOneByOne) {
  auto values = run(kernel("f", R"(
setp.lt.u32 %p1, %r4, 11;
@%p1 bra LOW;
bar.sync 3;
mov.u32 %r10, 1;
bra OUT;
LOW:
bar.sync 3;
mov.u32 %r10, 2;
OUT:
st.global.u32 [%d4], %r10;
)"),
                    {64, 1, 1}, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i % 32 < 11 ? 2 : 1);
}

// Warp 0 makes, warp 1 takes; warps 2 and 3 have a barrier of their own.
TEST_P(BarrierInEverySchedule, WithACountLetsWarpsPair) {
  auto values = run(".shared .align 4 .b8 s[512];\n" + kernel("f", R"(
mov.u32 %r10, s;
mad.lo.u32 %r11, %r4, 4, %r10;
setp.ge.u32 %p1, %r0, 64;
@%p1 bra OTHERS;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra TAKE;
st.shared.u32 [%r11], %r3;
bar.arrive 1, 64;
bra OUT;
TAKE:
bar.sync 1, 64;
ld.shared.u32 %r12, [%r11];
st.global.u32 [%d4], %r12;
bra OUT;
OTHERS:
barrier.sync 2, 64;
st.global.u32 [%d4], 77;
OUT:
)"),
                    {128, 1, 1}, 128);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[32 + i], i);
  for (uint32_t i = 64; i < 128; ++i) EXPECT_EQ(values[i], 77);
}

TEST_P(BarrierInEverySchedule, Reduces) {
  auto values = run(kernel("f", R"(
rem.u32 %r10, %r0, 3;
setp.eq.u32 %p1, %r10, 0;
bar.red.popc.u32 %r11, 0, %p1;
bar.red.popc.u32 %r12, 0, !%p1;
bar.red.and.pred %p2, 0, %p1;
bar.red.or.pred %p3, 0, %p1;
setp.lt.u32 %p4, %r0, 1000;
bar.red.and.pred %p5, 0, %p4;
bar.red.or.pred %p6, 0, !%p4;
selp.u32 %r13, 1, 0, %p2;
selp.u32 %r14, 2, 0, %p3;
selp.u32 %r15, 4, 0, %p5;
selp.u32 %r16, 8, 0, %p6;
or.b32 %r13, %r13, %r14;
or.b32 %r13, %r13, %r15;
or.b32 %r13, %r13, %r16;
mad.lo.u32 %r11, %r11, 1000, %r12;
mad.lo.u32 %r11, %r11, 1000, %r13;
st.global.u32 [%d4], %r11;
)"),
                    {100, 1, 1}, 100);
  EXPECT_EQ(values, std::vector<uint32_t>(100, 34 * 1000000 + 66 * 1000 + 6));
}

TEST(Barrier, RefusesACountThatIsNoMultipleOfAWarp) {
  Program program(kernel("f", "bar.sync 0, 40;"));
  program.result("f", {1, 1, 1}, {64, 1, 1}, {program.zeros(1)}, 1);
  EXPECT_NE(program.grids[0]->error.find("barrier for 40 threads"), std::string::npos)
      << program.grids[0]->error;
  EXPECT_NE(program.grids[0]->error_code, 0);
}

TEST(Barrier, RefusesCountsThatDiffer) {
  Program program(kernel("f", R"(
setp.lt.u32 %p1, %r0, 32;
@%p1 bra A;
bar.sync 1, 64;
bra OUT;
A:
bar.sync 1, 96;
OUT:
)"));
  program.result("f", {1, 1, 1}, {128, 1, 1}, {program.zeros(1)}, 1);
  EXPECT_NE(program.grids[0]->error.find("where others wait at it for"), std::string::npos)
      << program.grids[0]->error;
}

TEST(Barrier, ThatNeverCompletesIsADeadlockWithEverybodysPlace) {
  for (ScheduleKind kind : kAllSchedules) {
    Program program(kernel("f", R"(
setp.eq.u32 %p1, %r0, 40;
@%p1 bra ONE;
bar.sync 0;
ONE:
bar.sync 5;
)"),
                    with(kind));
    program.start("f", {1, 1, 1}, {64, 1, 1}, {0});
    EXPECT_EQ(program.run(), Executor::Outcome::Deadlock);
    std::string report = program.executor.deadlock_report();
    EXPECT_NE(report.find("waits at barrier 0; not there: warp 1 lanes 0x100\n"), std::string::npos)
        << report;
    EXPECT_NE(report.find("warp 1 lanes 0x100, test.ptx:"), std::string::npos) << report;
    EXPECT_NE(report.find("waits at barrier 5; not there: warp 0 lanes 0xffffffff, warp 1 lanes 0xfffffeff"),
              std::string::npos)
        << report;
    program.executor.clear();
    EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  }
}

}  // namespace
}  // namespace klap::emulator::test
