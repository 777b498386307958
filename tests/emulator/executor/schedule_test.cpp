// Who goes next: waiting by spinning ends in every schedule, a seed means one run, grids share the device.
#include <gtest/gtest.h>

#include <set>

#include "program.h"

namespace klap::emulator::test {
namespace {

class Schedules : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(Executor, Schedules, testing::ValuesIn(kAllSchedules), ScheduleName{});

// Thread `setter` (over the grid) raises the flag after some work of its own; all others spin on it.
std::string spin(const std::string& setter, const std::string& load) {
  return kernel("f", R"(
setp.eq.u32 %p1, %r3, )" +
                         setter + R"(;
@%p1 bra SET;
SPIN:
)" + load + R"( %r10, [%d1];
setp.eq.u32 %p2, %r10, 0;
@%p2 bra SPIN;
bra OUT;
SET:
mov.u32 %r11, 0;
WORK:
add.u32 %r11, %r11, 1;
setp.lt.u32 %p2, %r11, 3000;
@%p2 bra WORK;
st.release.gpu.global.u32 [%d1], %r11;
mov.u32 %r10, %r11;
OUT:
st.global.u32 [%d4], %r10;
)");
}

TEST_P(Schedules, WaitingByReadingEnds) {
  for (const char* setter : {"0", "31", "50", "255", "256", "511"}) {
    for (const char* load : {"ld.acquire.gpu.global.u32", "ld.volatile.global.u32", "ld.global.u32"}) {
      ExecutorOptions options = with(GetParam(), 7);
      options.max_steps = 400000000;
      Program program(spin(setter, load), options);
      auto values = program.result("f", {8, 1, 1}, {64, 1, 1}, {program.zeros(512), program.zeros(1)}, 512);
      EXPECT_EQ(program.grids[0]->error, "") << setter << load;
      EXPECT_EQ(values, std::vector<uint32_t>(512, 3000));
    }
  }
}

// Every block waits for the one before it: with all the blocks that fit resident, someone can always go on.
TEST_P(Schedules, AChainOfBlocksEnds) {
  ExecutorOptions options = with(GetParam(), 5);
  options.max_steps = 400000000;
  Program program(kernel("f", R"(
setp.ne.u32 %p1, %r0, 0;
@%p1 bra READY;
atom.global.add.u32 %r10, [%d1], 1;
SPIN:
ld.acquire.gpu.global.u32 %r11, [%d1+4];
setp.ne.u32 %p2, %r11, %r10;
@%p2 bra SPIN;
add.u32 %r11, %r11, 1;
st.release.gpu.global.u32 [%d1+4], %r11;
READY:
bar.sync 0;
st.global.u32 [%d4], 1;
)"),
                  options);
  auto values = program.result("f", {100, 1, 1}, {64, 1, 1}, {program.zeros(6400), program.zeros(2)}, 6400);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(values, std::vector<uint32_t>(6400, 1));
}

// Threads draw tickets: the order in which they do it is the schedule.
constexpr const char* kTickets = R"(
mov.u32 %r11, 0;
MORE:
atom.global.add.u32 %r10, [%d1], 1;
st.global.u32 [%d4], %r10;
bar.warp.sync -1;
add.u32 %r11, %r11, 1;
setp.lt.u32 %p1, %r11, 4;
@%p1 bra MORE;
)";

std::vector<uint32_t> tickets(ScheduleKind kind, uint64_t seed) {
  Program program(kernel("f", kTickets), with(kind, seed));
  auto values = program.result("f", {6, 1, 1}, {64, 1, 1}, {program.zeros(384), program.zeros(1)}, 384);
  EXPECT_EQ(program.grids[0]->error, "");
  return values;
}

TEST_P(Schedules, TheSameSeedIsTheSameRun) {
  std::set<std::vector<uint32_t>> runs;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto first = tickets(GetParam(), seed);
    EXPECT_EQ(first, tickets(GetParam(), seed));
    runs.insert(first);
  }
  if (GetParam() == ScheduleKind::Fast) {
    EXPECT_EQ(runs.size(), 1u);
  } else if (GetParam() != ScheduleKind::RoundRobin) {
    EXPECT_GE(runs.size(), 5u);
  }
}

// Runs eight blocks that start late, or none does; returns the thread-instructions.
uint64_t steps_of_eight(const std::string& body, ScheduleKind kind, uint64_t late_blocks) {
  ExecutorOptions options = with(kind, 3);
  options.late_blocks = late_blocks;
  options.max_steps = 400000000;
  Program program(kernel("f", body), options);
  auto values = program.result("f", {8, 1, 1}, {32, 1, 1}, {program.zeros(256), program.zeros(1)}, 256);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(program.finished_blocks, 8u);
  EXPECT_EQ(values, std::vector<uint32_t>(256, 256));
  return program.executor.steps();
}

TEST_P(Schedules, WhoIsThereWaitsForLateBlocks) {
  const std::string all_wait_for_all = R"(
red.global.add.u32 [%d1], 1;
WAIT:
ld.acquire.gpu.global.u32 %r10, [%d1];
setp.lt.u32 %p1, %r10, 256;
@%p1 bra WAIT;
st.global.u32 [%d4], %r10;
)";
  EXPECT_GT(steps_of_eight(all_wait_for_all, GetParam(), 5000000),
            1000000 + steps_of_eight(all_wait_for_all, GetParam(), 0));
}

TEST_P(Schedules, LateBlocksStartWhereNobodyElseRuns) {
  const std::string nobody_waits = "st.global.u32 [%d4], 256;\n";
  EXPECT_EQ(steps_of_eight(nobody_waits, GetParam(), 1000000000000),
            steps_of_eight(nobody_waits, GetParam(), 0));
}

TEST_P(Schedules, EveryBlockRunsOnceWithItsOwnIndex) {
  Program program(kernel("f", R"(
mov.u32 %r10, %ctaid.y;
mov.u32 %r11, %ctaid.z;
mov.u32 %r12, %nctaid.x;
mov.u32 %r13, %nctaid.y;
mad.lo.u32 %r11, %r11, %r13, %r10;
mad.lo.u32 %r11, %r11, %r12, %r1;
mov.u32 %r14, %tid.y;
mad.lo.u32 %r14, %r14, %r2, %r0;
mad.lo.u32 %r11, %r11, 6, %r14;
mul.wide.u32 %d10, %r11, 4;
add.u64 %d10, %d0, %d10;
red.global.add.u32 [%d10], 1;
)"),
                  with(GetParam(), 3));
  auto values = program.result("f", {5, 7, 9}, {3, 2, 1}, {program.zeros(1890)}, 1890);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(values, std::vector<uint32_t>(1890, 1));
  EXPECT_EQ(program.finished_blocks, 315u);
  EXPECT_EQ(program.grids[0]->blocks_finished, 315u);
}

// A grid that is started when another one ends, as streams and launches from the device do.
TEST_P(Schedules, GridsMayStartOthers) {
  Program program(kernel("f", "red.global.add.u32 [%d0], 1;"), with(GetParam()));
  uint64_t out = program.zeros(1);
  program.on_end = [&](Grid& grid) {
    if (grid.id < 5) program.start("f", {2, 1, 1}, {32, 1, 1}, {out}, 0, &grid);
  };
  program.start("f", {2, 1, 1}, {32, 1, 1}, {out});
  EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  EXPECT_EQ(program.words(out, 1)[0], 5 * 64);
}

// What comes first when a child grid and its parent can both run.
TEST(SchedulesOfChildren, FirstAndLast) {
  for (bool first : {true, false}) {
    Program program(kernel("f", R"(
mov.u32 %r11, 0;
WORK:
add.u32 %r11, %r11, 1;
setp.lt.u32 %p2, %r11, 500;
@%p2 bra WORK;
atom.global.add.u32 %r10, [%d1], 1;
setp.eq.u32 %p1, %r0, 0;
@%p1 st.global.u32 [%d0], %r10;
)"),
                    with(first ? ScheduleKind::ChildFirst : ScheduleKind::ChildLast));
    uint64_t parent_out = program.zeros(1), child_out = program.zeros(1), counter = program.zeros(1);
    Grid& parent = program.start("f", {1, 1, 1}, {32, 1, 1}, {parent_out, counter});
    program.executor.turn();
    program.start("f", {1, 1, 1}, {32, 1, 1}, {child_out, counter}, 0, &parent);
    EXPECT_EQ(program.run(), Executor::Outcome::Idle);
    EXPECT_EQ(program.words(child_out, 1)[0] < program.words(parent_out, 1)[0], first);
  }
}

// A parent that waits for its running child, and a child that waits for its parent.
TEST_P(Schedules, GridsMayWaitForEachOther) {
  ExecutorOptions options = with(GetParam(), 3);
  options.max_steps = 400000000;
  Program program(kernel("f", R"(
st.volatile.global.u32 [%d0], 1;
SPIN:
ld.volatile.global.u32 %r10, [%d1];
setp.eq.u32 %p1, %r10, 0;
@%p1 bra SPIN;
st.volatile.global.u32 [%d0], 2;
)"),
                  options);
  uint64_t one = program.zeros(1), other = program.zeros(1);
  Grid& parent = program.start("f", {1, 1, 1}, {32, 1, 1}, {one, other});
  program.start("f", {1, 1, 1}, {32, 1, 1}, {other, one}, 0, &parent);
  EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  EXPECT_EQ(program.words(one, 1)[0] + program.words(other, 1)[0], 4);
}

// The most threads that were there at once.
constexpr const char* kCountResident = R"(
atom.global.add.u32 %r10, [%d1], 1;
add.u32 %r10, %r10, 1;
atom.global.max.u32 %r11, [%d0], %r10;
mov.u32 %r11, 0;
WORK:
add.u32 %r11, %r11, 1;
setp.lt.u32 %p2, %r11, 100;
@%p2 bra WORK;
atom.global.add.u32 %r10, [%d1], -1;
)";

TEST(SchedulesOfBlocks, RegistersLimitResidentBlocksToo) {
  ExecutorOptions options = with(ScheduleKind::Random);
  options.device.multiprocessors = 1;
  Program program(kernel("f", kCountResident), options);
  program.image->functions[program.image->kernels.at("f")]->register_estimate = 255;
  auto values = program.result("f", {50, 1, 1}, {64, 1, 1}, {program.zeros(1), program.zeros(1)}, 1);
  EXPECT_EQ(values[0], 4u * 64);
}

TEST(SchedulesOfBlocks, NoMoreAreResidentThanFit) {
  ExecutorOptions options = with(ScheduleKind::Random);
  options.device.multiprocessors = 2;
  options.device.resident_blocks = 3;
  Program program(kernel("f", kCountResident), options);
  auto values = program.result("f", {50, 1, 1}, {1, 1, 1}, {program.zeros(1), program.zeros(1)}, 1);
  EXPECT_EQ(values[0], 6);
}

TEST(SchedulesOfBlocks, OccupancyIsLimitedByThreadsSharedMemoryAndRegisters) {
  DeviceShape device;
  Function kernel;
  EXPECT_EQ(Executor::occupancy(device, kernel, 32, 0), 8u);
  EXPECT_EQ(Executor::occupancy(device, kernel, 1024, 0), 2u);
  EXPECT_EQ(Executor::occupancy(device, kernel, 700, 0), 2u);
  EXPECT_EQ(Executor::occupancy(device, kernel, 32, 100 * 1024), 2u);
  kernel.shared_bytes = 100 * 1024;
  EXPECT_EQ(Executor::occupancy(device, kernel, 32, 20 * 1024), 1u);
  kernel.shared_bytes = 0;
  kernel.register_estimate = 128;
  EXPECT_EQ(Executor::occupancy(device, kernel, 256, 0), 2u);
}

TEST(Limits, ARunWithoutAnEndIsGivenUp) {
  ExecutorOptions options;
  options.max_steps = 1000000;
  Program program(kernel("f", "AGAIN:\nbra AGAIN;"), options);
  program.start("f", {2, 1, 1}, {64, 1, 1}, {});
  EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  const std::string& error = program.grids[0]->error;
  EXPECT_NE(error.find("(limit 1000000)"), std::string::npos) << error;
  EXPECT_NE(error.find("block (1, 0, 0), warp 1 lanes 0xffffffff, test.ptx:"), std::string::npos) << error;
  EXPECT_EQ(program.grids[0]->error_code, 702);
}

}  // namespace
}  // namespace klap::emulator::test
