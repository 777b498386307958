// A child's thread that leaves early, where the child was put into another kernel: as long as it exits,
// nobody waits for it; where its `ret` became a branch to the place where the kernel goes on, the others wait
// for ever, or wait for the wrong ones. And threads that leave a barrier out.
#include <gmock/gmock.h>

#include "program.h"

namespace klap::emulator::faults {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kTimeOut = 702;
constexpr uint64_t kSeeds = 5;
constexpr std::array kSchedules{ScheduleKind::Fast, ScheduleKind::RoundRobin, ScheduleKind::Random,
                                ScheduleKind::OneBlock, ScheduleKind::StarveOne};

// The first `leaving` threads do `leave`; the others wait for each other, then write 1 to their words.
std::string child(int leaving, const std::string& leave, const std::string& wait) {
  return "mul.wide.u32 %d3, %r0, 4;\n"
         "add.u64 %d3, %d3, %d0;\n"
         "setp.lt.u32 %p0, %r0, " +
         std::to_string(leaving) + ";\n@%p0 " + leave + ";\n" + wait +
         "st.global.u32 [%d3], 1;\n"
         "NEXT:\n";
}

const std::string kWarpBarrier = "bar.warp.sync 0xffffffff;\n";
const std::string kShuffle = "shfl.sync.idx.b32 %r2, %r0, 31, 31, 0xffffffff;\n";
const std::string kBlockBarrier = "bar.sync 0;\n";
const std::string kOtherBarrier = "bar.sync 1;\n";  // of the kernel around the child

template <typename Judge>
void in_every_schedule(const std::string& body, Dim3 block, Judge judge) {
  for (const ScheduleKind kind : kSchedules) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::string(to_string(kind)) + ", seed " + std::to_string(seed));
      judge(run(body, {2, 1, 1}, block, options(kind, seed)));
    }
  }
}

// With `ret` the others go on; with a branch to `around` they do not.
void expect_caught(const std::string& wait, const std::string& around, int leaving, uint32_t threads) {
  in_every_schedule(child(leaving, "ret", wait) + around, {threads, 1, 1}, [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.error, 0) << outcome.error_text;
    for (uint32_t i = 0; i < threads; ++i)
      EXPECT_EQ(outcome.words[0][i], i < static_cast<uint32_t>(leaving) ? 0u : 1u) << i;
  });
  in_every_schedule(child(leaving, "bra NEXT", wait) + around, {threads, 1, 1}, [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.error, kTimeOut);
    EXPECT_THAT(outcome.error_text, AllOf(HasSubstr("block (0, 0, 0)"), HasSubstr("block (1, 0, 0)"),
                                          HasSubstr("test.ptx:"), HasSubstr("barrier 1")));
  });
}

TEST(Waiting, ForALaneThatWentOnIsCaughtAtTheWarpsBarrier) {
  expect_caught(kWarpBarrier, kOtherBarrier, 5, 32);
}
TEST(Waiting, ForALaneThatWentOnIsCaughtAtAShuffle) { expect_caught(kShuffle, kOtherBarrier, 1, 32); }
TEST(Waiting, ForALaneThatWentOnIsCaughtAtTheBlocksBarrier) {
  expect_caught(kBlockBarrier, kOtherBarrier, 7, 96);
}
TEST(Waiting, ForAWarpThatWentOnIsCaught) { expect_caught(kBlockBarrier, kOtherBarrier, 32, 96); }

// With one barrier for both purposes nobody is stuck in the wrong program, but threads pass the barrier
// before the others' stores: a race.
TEST(Waiting, ABarrierPassedTogetherWithThoseThatWentOnIsCaught) {
  const auto body = [](const std::string& leave) {
    return "shl.b32 %r4, %r0, 2;\n"
           "cvt.u64.u32 %d4, %r4;\n"
           "add.u64 %d4, %d4, %d1;\n"  // its word of the second array
           "setp.lt.u32 %p0, %r0, 32;\n"
           "@%p0 " +
           leave +
           ";\n"
           "bar.sync 0;\n"
           "st.global.u32 [%d4], 1;\n"
           "NEXT:\n"
           "bar.sync 0;\n"
           "setp.ne.u32 %p1, %r0, 0;\n"
           "@%p1 ret;\n"
           "ld.global.u32 %r5, [%d1+128];\n"
           "st.global.u32 [%d2], %r5;\n";
  };
  size_t findings = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    MachineOptions chosen = options(ScheduleKind::Random, seed);
    chosen.executor.order.detect_races = true;
    EXPECT_THAT(run(body("ret"), {1, 1, 1}, {64, 1, 1}, chosen).findings, testing::IsEmpty());
    findings += run(body("bra NEXT"), {1, 1, 1}, {64, 1, 1}, chosen).findings.size();
  }
  EXPECT_GT(findings, 0u);
}

}  // namespace
}  // namespace klap::emulator::faults
