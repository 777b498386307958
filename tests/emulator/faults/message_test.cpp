// One block writes data and sets a flag, another waits for the flag and reads the data: right with a release
// and an acquire, found wrong without either, and without both. So is a read through the non-coherent cache,
// which no acquire orders.
#include <gmock/gmock.h>

#include "program.h"

namespace klap::emulator::faults {
namespace {

constexpr uint64_t kSeeds = 40;

// How the program is written. The data is the first array, the flag the second, what was read the third.
struct Message {
  std::string set, wait, read;
  [[nodiscard]] std::string body() const {
    return "setp.ne.u32 %p0, %r1, 0;\n"
           "@%p0 bra READER;\n"
           "st.global.u32 [%d0], 7;\n" +
           set +
           "ret;\n"
           "READER:\n" +
           wait +
           "setp.eq.u32 %p1, %r2, 0;\n"
           "@%p1 bra READER;\n" +
           read + "st.global.u32 [%d2], %r3;\n";
  }
};

const std::string kRelease = "st.release.gpu.global.u32 [%d1], 1;\n";
const std::string kSet = "st.relaxed.gpu.global.u32 [%d1], 1;\n";
const std::string kFenceAndSet = "fence.acq_rel.gpu;\n" + kSet;
const std::string kSetAndFence = kSet + "fence.acq_rel.gpu;\n";
const std::string kReleaseInBlock = "st.release.cta.global.u32 [%d1], 1;\n";
const std::string kAcquire = "ld.acquire.gpu.global.u32 %r2, [%d1];\n";
const std::string kWait = "ld.relaxed.gpu.global.u32 %r2, [%d1];\n";
const std::string kWaitAndFence = kWait + "fence.acq_rel.gpu;\n";
const std::string kAcquireInBlock = "ld.acquire.cta.global.u32 %r2, [%d1];\n";
const std::string kRead = "ld.global.u32 %r3, [%d0];\n";
const std::string kNonCoherentRead = "ld.global.nc.u32 %r3, [%d0];\n";

struct Seen {
  int right = 0, stale = 0;
  size_t findings = 0;
};

Seen over_seeds(const Message& message, bool weak_memory, bool races) {
  Seen seen;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const ScheduleKind kind : {ScheduleKind::Random, ScheduleKind::RoundRobin}) {
      MachineOptions chosen = options(kind, seed);
      chosen.executor.order.weak_memory = weak_memory;
      chosen.executor.order.detect_races = races;
      const Outcome outcome = run(message.body(), {2, 1, 1}, {1, 1, 1}, chosen);
      EXPECT_EQ(outcome.error, 0) << outcome.error_text;
      seen.findings += outcome.findings.size();
      const uint32_t value = outcome.words[2][0];
      EXPECT_THAT(value, testing::AnyOf(0u, 7u));
      ++(value == 7 ? seen.right : seen.stale);
    }
  }
  return seen;
}

void expect_right(const Message& message) {
  const Seen seen = over_seeds(message, true, true);
  EXPECT_EQ(seen.stale, 0);
  EXPECT_EQ(seen.findings, 0u);
}

// By the stale value as well as by the race, and by the race alone where memory is not weak.
void expect_caught(const Message& message) {
  const Seen seen = over_seeds(message, true, true);
  EXPECT_GT(seen.stale, 0);
  EXPECT_GT(seen.right, 0);
  EXPECT_GT(seen.findings, 0u);
  EXPECT_GT(over_seeds(message, false, true).findings, 0u);
}

TEST(Message, ReleaseAndAcquireDeliverIt) { expect_right({kRelease, kAcquire, kRead}); }
TEST(Message, FencesDeliverIt) { expect_right({kFenceAndSet, kWaitAndFence, kRead}); }
TEST(Message, AFenceServesAnAcquireAndARelease) {
  expect_right({kFenceAndSet, kAcquire, kRead});
  expect_right({kRelease, kWaitAndFence, kRead});
}

TEST(Message, NoReleaseIsCaught) {
  expect_caught({kSet, kAcquire, kRead});
  expect_caught({kSet, kWaitAndFence, kRead});
}
TEST(Message, NoAcquireIsCaught) {
  expect_caught({kRelease, kWait, kRead});
  expect_caught({kFenceAndSet, kWait, kRead});
}
TEST(Message, NeitherIsCaught) { expect_caught({kSet, kWait, kRead}); }
TEST(Message, AFenceThatComesTooLateIsCaught) { expect_caught({kSetAndFence, kAcquire, kRead}); }
TEST(Message, AFenceThatComesTooEarlyIsCaught) {
  expect_caught({kRelease, "fence.acq_rel.gpu;\n" + kWait, kRead});
}
TEST(Message, AScopeThatEndsAtTheBlockIsCaught) {
  expect_caught({kReleaseInBlock, kAcquire, kRead});
  expect_caught({kRelease, kAcquireInBlock, kRead});
}

// The acquire orders the read, but the cache may still hold what the kernel began with.
TEST(Message, ANonCoherentReadAfterTheAcquireIsCaught) {
  const Seen seen = over_seeds({kRelease, kAcquire, kNonCoherentRead}, true, false);
  EXPECT_GT(seen.stale, 0);
  EXPECT_GT(seen.right, 0);
}

}  // namespace
}  // namespace klap::emulator::faults
