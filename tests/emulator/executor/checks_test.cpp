// That the executor tells the order of accesses what it needs: who accesses what, and what orders whom.
#include <gtest/gtest.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

ExecutorOptions all_checks(ScheduleKind schedule, uint64_t seed) {
  ExecutorOptions options = with(schedule, seed);
  options.order = {.weak_memory = true, .detect_races = true, .detect_uninitialised = true, .seed = seed};
  return options;
}

struct Exchange {
  const char* name;
  const char* between;  // the thread's write and its read of another thread's
  uint32_t threads, shift;
  bool is_race;
};

// Thread i writes word i of shared memory and reads word (i + shift) % threads.
class Exchanges : public testing::TestWithParam<Exchange> {};
INSTANTIATE_TEST_SUITE_P(
    Executor, Exchanges,
    testing::Values(Exchange{"Barrier", "bar.sync 0;", 64, 32, false}, Exchange{"Nothing", "", 64, 32, true},
                    Exchange{"FenceOnly", "membar.cta;", 64, 32, true},
                    Exchange{"WarpBarrier", "bar.warp.sync -1;", 32, 1, false},
                    Exchange{"ShuffleOrdersNothing", "shfl.sync.idx.b32 %r20, %r0, 0, 31, -1;", 32, 1, true},
                    Exchange{"WarpBarrierIsNotTheBlocks", "bar.warp.sync -1;", 64, 32, true},
                    Exchange{"BarrierOfBothHalves", "bar.sync 1, 64;", 64, 32, false},
                    Exchange{"BarrierOfWarpsAlone", "shr.u32 %r20, %r0, 5;\nbar.sync %r20, 32;", 64, 32,
                             true},
                    Exchange{"Reduction", "bar.red.popc.u32 %r20, 0, 1;", 64, 32, false}),
    [](const auto& one) { return one.param.name; });

TEST_P(Exchanges, AreRacesWithoutABarrierBetween) {
  const Exchange& exchange = GetParam();
  std::string body =
      "mov.u32 %r10, s;\nmad.lo.u32 %r11, %r0, 4, %r10;\nadd.u32 %r13, %r0, 1;\n"
      "st.shared.u32 [%r11], %r13;\n" +
      std::string(exchange.between) + "\nadd.u32 %r12, %r0, " + std::to_string(exchange.shift) +
      ";\nrem.u32 %r12, %r12, " + std::to_string(exchange.threads) +
      ";\nmad.lo.u32 %r11, %r12, 4, %r10;\nld.shared.u32 %r13, [%r11];\nst.global.u32 [%d4], %r13;\n";
  size_t findings = 0;
  for (ScheduleKind schedule : kAllSchedules) {
    Program program(".shared .align 4 .b8 s[256];\n" + kernel("f", body), all_checks(schedule, 4));
    auto values =
        program.result("f", {2, 1, 1}, {exchange.threads, 1, 1}, {program.zeros(128)}, 2 * exchange.threads);
    EXPECT_EQ(program.grids[0]->error, "");
    findings += program.findings.size();
    if (exchange.is_race) continue;
    EXPECT_EQ(program.findings, std::vector<std::string>{});
    for (uint32_t i = 0; i < exchange.threads; ++i)
      EXPECT_EQ(values[i], (i + exchange.shift) % exchange.threads + 1);
  }
  EXPECT_EQ(findings != 0, exchange.is_race);
}

// bar.arrive orders one way: the maker before the taker.
TEST(Checks, ArrivingOrdersWhatCameBefore) {
  for (ScheduleKind schedule : kAllSchedules) {
    Program program(".shared .align 4 .b8 s[128];\n" + kernel("f", R"(
mov.u32 %r10, s;
mad.lo.u32 %r11, %r4, 4, %r10;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra TAKE;
st.shared.u32 [%r11], %r0;
bar.arrive 1, 64;
ret;
TAKE:
bar.sync 1, 64;
ld.shared.u32 %r12, [%r11];
st.global.u32 [%d4], %r12;
)"),
                    all_checks(schedule, 9));
    auto values = program.result("f", {1, 1, 1}, {64, 1, 1}, {program.zeros(64)}, 64);
    EXPECT_EQ(program.grids[0]->error, "");
    EXPECT_EQ(program.findings, std::vector<std::string>{});
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[32 + i], i);
  }
}

// A message from block 0 to block 1.
std::string message(const std::string& store, const std::string& load) {
  return kernel("f", R"(
setp.ne.u32 %p1, %r0, 0;
@%p1 ret;
setp.eq.u32 %p1, %r1, 1;
@%p1 bra TAKE;
st.global.u32 [%d1], 42;
)" + store + R"( [%d1+128], 1;
ret;
TAKE:
)" + load + R"( %r10, [%d1+128];
setp.eq.u32 %p2, %r10, 0;
@%p2 bra TAKE;
ld.global.u32 %r11, [%d1];
st.global.u32 [%d0], %r11;
)");
}

TEST(Checks, AMessageNeedsReleaseAndAcquire) {
  bool seen_stale = false;
  for (ScheduleKind schedule : kAllSchedules) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Program good(message("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"),
                   all_checks(schedule, seed));
      EXPECT_EQ(good.result("f", {2, 1, 1}, {32, 1, 1}, {good.zeros(1), good.zeros(64)}, 1)[0], 42);
      EXPECT_EQ(good.findings, std::vector<std::string>{});
      Program bad(message("st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32"),
                  all_checks(schedule, seed));
      uint32_t got = bad.result("f", {2, 1, 1}, {32, 1, 1}, {bad.zeros(1), bad.zeros(64)}, 1)[0];
      seen_stale = seen_stale || got == 0;
      EXPECT_NE(bad.findings.size(), 0u);
    }
  }
  EXPECT_TRUE(seen_stale);
}

// What a grid did happened before what starts after it.
TEST(Checks, GridsAreOrderedByTheirHistory) {
  for (bool ordered : {true, false}) {
    Program program(kernel("w", "add.u32 %r10, %r3, 5;\nst.global.u32 [%d4], %r10;") +
                        kernel("r", "ld.global.u32 %r10, [%d1];\nst.global.u32 [%d4], %r10;"),
                    all_checks(ScheduleKind::Random, 1));
    uint64_t first = program.zeros(64), second = program.zeros(64);
    Grid& writer = program.start("w", {1, 1, 1}, {64, 1, 1}, {first});
    program.run();
    auto reader = std::make_unique<Grid>();
    reader->launch = writer.launch;
    reader->launch.kernel = program.image->functions[program.image->kernels.at("r")].get();
    std::vector<uint64_t> parameters{second, first, 0, 0};
    std::copy_n(std::as_bytes(std::span(parameters)).begin(), 32, reader->launch.parameters.begin());
    if (ordered) reader->after = writer.history;
    program.executor.start(*reader);
    program.run();
    EXPECT_EQ(program.findings.empty(), ordered);
    if (ordered) {
      EXPECT_EQ(program.words(second, 64), std::vector<uint32_t>(64, 5));
    }
  }
}

TEST(Checks, UninitialisedSharedMemoryIsFound) {
  Program program(
      ".shared .align 4 .b8 s[256];\n" +
          kernel("f", "mov.u32 %r10, s;\nld.shared.u32 %r11, [%r10+8];\nst.global.u32 [%d4], %r11;"),
      all_checks(ScheduleKind::Fast, 1));
  program.result("f", {1, 1, 1}, {1, 1, 1}, {program.zeros(1)}, 1);
  ASSERT_EQ(program.findings.size(), 1u);
  EXPECT_NE(program.findings[0].find("test.ptx"), std::string::npos) << program.findings[0];
}

// Waiting ends with weak memory too, however long a store stays hidden.
TEST(Checks, WaitingEndsWithWeakMemory) {
  for (ScheduleKind schedule : kAllSchedules) {
    for (const char* load : {"ld.volatile.global.u32", "ld.acquire.gpu.global.u32", "ld.global.u32"}) {
      ExecutorOptions options = all_checks(schedule, 2);
      options.order.detect_races = false;
      options.max_steps = 100000000;
      Program program(message("st.global.u32", load), options);
      program.result("f", {2, 1, 1}, {32, 1, 1}, {program.zeros(1), program.zeros(64)}, 1);
      EXPECT_EQ(program.grids[0]->error, "") << load;
    }
  }
}

}  // namespace
}  // namespace klap::emulator::test
