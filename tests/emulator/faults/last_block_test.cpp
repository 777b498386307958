// Blocks that count themselves out, where the last one uses what all wrote and resets what all read: right
// with a barrier and fences around the count, found wrong without any one of them, and where the first block
// resets.
#include <gmock/gmock.h>

#include "program.h"

namespace klap::emulator::faults {
namespace {

constexpr uint32_t kBlocks = 12, kThreads = 75;  // more blocks than are resident at once
constexpr uint64_t kSeeds = 12;

// Not membar.gl: those are in one order all by themselves, so that the fence before the count nearly always
// does what the one after it is there for.
const std::string kFence = "fence.acq_rel.gpu;\n";

// The first array: a word of every block. The second: the counter, and a word that all threads read and the
// last block resets. The third: the sum of the blocks' words.
struct LastBlock {
  std::string barrier = "bar.sync 0;\n", release = kFence, acquire = kFence;
  uint32_t last = kBlocks - 1;  // the count that the block which resets has found
  [[nodiscard]] std::string body() const {
    return "ld.global.u32 %r9, [%d1+4];\n"
           "add.u32 %r2, %r9, 1;\n"
           "mul.wide.u32 %d3, %r1, 4;\n"
           "add.u64 %d3, %d3, %d0;\n"
           "setp.ne.u32 %p0, %r0, 70;\n"  // not of the warp that counts
           "@!%p0 st.global.u32 [%d3], %r2;\n" +
           barrier + "setp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\n" + release +
           "atom.global.add.u32 %r3, [%d1], 1;\n"
           "setp.ne.u32 %p0, %r3, " +
           std::to_string(last) + ";\n@%p0 ret;\n" + acquire +
           "mov.u32 %r4, 0;\n"
           "mov.u32 %r5, 0;\n"
           "mov.u64 %d3, %d0;\n"
           "SUM:\n"
           "ld.global.u32 %r6, [%d3];\n"
           "add.u32 %r4, %r4, %r6;\n"
           "add.u64 %d3, %d3, 4;\n"
           "add.u32 %r5, %r5, 1;\n"
           "setp.lt.u32 %p0, %r5, " +
           std::to_string(kBlocks) +
           ";\n@%p0 bra SUM;\n"
           "st.global.u32 [%d2], %r4;\n"
           "st.global.u32 [%d1+4], 100;\n"
           "st.global.u32 [%d1], 0;\n";
  }
};

struct Seen {
  int right = 0, wrong = 0;
  std::vector<std::string> findings;
};

Seen over_seeds(const LastBlock& program, bool weak_memory) {
  Seen seen;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const ScheduleKind kind : {ScheduleKind::Random, ScheduleKind::OneBlock, ScheduleKind::StarveOne}) {
      MachineOptions chosen = options(kind, seed);
      chosen.executor.device.multiprocessors = 1;
      chosen.executor.order.weak_memory = weak_memory;
      chosen.executor.order.detect_races = true;
      const Outcome outcome = run(program.body(), {kBlocks, 1, 1}, {kThreads, 1, 1}, chosen);
      EXPECT_EQ(outcome.error, 0) << outcome.error_text;
      ++(outcome.words[2][0] == kBlocks ? seen.right : seen.wrong);
      seen.findings.insert(seen.findings.end(), outcome.findings.begin(), outcome.findings.end());
    }
  }
  return seen;
}

TEST(LastBlock, UsesWhatAllWrote) {
  for (const bool weak_memory : {false, true}) {
    const Seen seen = over_seeds({}, weak_memory);
    EXPECT_EQ(seen.wrong, 0);
    EXPECT_THAT(seen.findings, testing::IsEmpty());
  }
}

void expect_caught(const LastBlock& program) {
  EXPECT_GT(over_seeds(program, true).wrong, 0);
  EXPECT_THAT(over_seeds(program, false).findings, testing::Not(testing::IsEmpty()));
}

TEST(LastBlock, NoFenceBeforeTheCountIsCaught) { expect_caught({.release = ""}); }
TEST(LastBlock, NoFenceAfterTheCountIsCaught) { expect_caught({.acquire = ""}); }
TEST(LastBlock, NoBarrierBeforeTheCountIsCaught) { expect_caught({.barrier = ""}); }
TEST(LastBlock, AResetWhileLateBlocksReadIsCaught) { expect_caught({.last = 0}); }

}  // namespace
}  // namespace klap::emulator::faults
