// Launches from device code: the pending limit, refusals and the errors that threads see, arguments,
// recursion, and how a machine fails.
#include <gmock/gmock.h>

#include "program.h"

namespace klap::emulator {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

MachineOptions scheduled(ScheduleKind kind) {
  MachineOptions options;
  options.executor.schedule = kind;
  options.executor.max_steps = 5'000'000;
  return options;
}

struct LimitCounts {
  unsigned ran = 0, failed = 0;
  int code = 0;
  DeviceLaunchCounts counts;
};

LimitCounts launch_many(MachineOptions options, uint32_t limit, int launches) {
  options.pending_launches = limit;
  Program program("launches", options);
  auto* ran = program.allocate<unsigned>(1);
  auto* failed = program.allocate<unsigned>(1);
  auto* code = program.allocate<int>(1);
  EXPECT_EQ(program.launch("many", {1, 1, 1}, {1, 1, 1}, launches, ran, failed, code), 0);
  EXPECT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  return {*ran, *failed, *code, program.machine.counts()};
}

TEST(Launches, BeyondThePendingLimitAreLost) {
  const LimitCounts r = launch_many(scheduled(ScheduleKind::ChildLast), 16, 50);
  EXPECT_EQ(r.ran, 16u);
  EXPECT_EQ(r.failed, 34u);
  EXPECT_EQ(r.code, 69);
  EXPECT_EQ(r.counts.device_launches, 16u);
  EXPECT_EQ(r.counts.refused, 34u);
  EXPECT_EQ(r.counts.over_limit, 34u);
  EXPECT_EQ(r.counts.host_launches, 1u);
}

TEST(Launches, AllRunUpToTheLimit) {
  const LimitCounts r = launch_many(scheduled(ScheduleKind::ChildLast), 50, 50);
  EXPECT_EQ(r.ran, 50u);
  EXPECT_EQ(r.failed, 0u);
}

TEST(Launches, ChildrenThatEndMakeRoom) {
  const LimitCounts r = launch_many(scheduled(ScheduleKind::ChildFirst), 16, 200);
  EXPECT_GT(r.ran, 16u);
  for (const MachineOptions& options : many_options(false)) {
    const LimitCounts any = launch_many(options, 16, 200);
    EXPECT_EQ(any.ran + any.failed, 200u) << describe(options);
    EXPECT_GE(any.ran, 16u) << describe(options);
  }
}

TEST(Launches, TheLimitIsThatOfTheHostsLaunch) {
  Program program("launches", scheduled(ScheduleKind::ChildLast));
  auto* ran = program.allocate<unsigned>(1);
  auto* failed = program.allocate<unsigned>(1);
  auto* code = program.allocate<int>(1);
  program.machine.set_pending_limit(10);
  program.launch("many", {1, 1, 1}, {1, 1, 1}, 20, ran, failed, code);
  program.machine.set_pending_limit(1000);
  ASSERT_EQ(program.machine.synchronise_all(), 0);
  EXPECT_EQ(*ran, 10u);
  program.launch("many", {1, 1, 1}, {1, 1, 1}, 20, ran, failed, code);
  ASSERT_EQ(program.machine.synchronise_all(), 0);
  EXPECT_EQ(*ran, 30u);
}

TEST(Launches, Recursion) {
  for (const bool checks : {false, true}) {
    for (const MachineOptions& options : many_options(checks, 2)) {
      SCOPED_TRACE(describe(options));
      Program program("launches", options);
      auto* ran = program.allocate<unsigned>(1);
      program.launch("tree", {1, 1, 1}, {32, 1, 1}, 5, ran);
      ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
      EXPECT_EQ(*ran, 364u);  // 1 + 3 + ... + 3^5
      EXPECT_THAT(program.findings, IsEmpty());
    }
  }
}

TEST(Launches, EveryThreadHasItsLastError) {
  for (const MachineOptions& options : many_options(true, 2)) {
    SCOPED_TRACE(describe(options));
    Program program("launches", options);
    auto* ran = program.allocate<unsigned>(1);
    auto* codes = program.allocate<int>(3 * 32, -1);
    program.launch("errors", {1, 1, 1}, {11, 1, 1}, ran, codes);
    ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    const std::vector<int> wanted = {0, 9, 9, 9, 9, 9, 1, 0, 1, 21, 0};
    for (size_t t = 0; t < wanted.size(); ++t) {
      EXPECT_EQ(codes[3 * t], wanted[t]) << "thread " << t;
      EXPECT_EQ(codes[3 * t + 1], wanted[t]) << "thread " << t;
      EXPECT_EQ(codes[3 * t + 2], 0) << "thread " << t;
    }
    EXPECT_EQ(*ran, 2u);
    EXPECT_EQ(program.machine.counts().refused, 7u);
  }
}

TEST(Launches, ArgumentsOfAllKindsArrive) {
  for (const MachineOptions& options : many_options(true, 2)) {
    Program program("launches", options);
    auto* out = program.allocate<double>(1);
    program.launch("give_arguments", {1, 1, 1}, {1, 1, 1}, out);
    ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    EXPECT_EQ(*out, 1 - 2 + static_cast<double>(1ull << 40) + 0.5 + 3 + 780) << describe(options);
    EXPECT_THAT(program.findings, IsEmpty());
  }
}

TEST(Launches, ShapeAndSharedMemoryArrive) {
  Program program("launches");
  auto* out = program.allocate<unsigned>(8 * 12);
  program.launch("launch_shape", {1, 1, 1}, {1, 1, 1}, out);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  for (unsigned block = 0; block < 12; ++block) {
    const unsigned where = block % 2 + 10 * (block / 2 % 3) + 100 * (block / 6);
    EXPECT_THAT(std::vector<unsigned>(out + 8 * block, out + 8 * block + 8),
                ::testing::ElementsAre(2, 3, 2, 4, 2, 3, 5, where));
  }
}

TEST(Launches, AKernelMayBeReachedByItsAddress) {
  Program program("launches");
  auto* ran = program.allocate<unsigned>(1);
  program.launch("by_pointer", {1, 1, 1}, {1, 1, 1}, 0, ran);
  program.launch("by_pointer", {1, 1, 1}, {2, 1, 1}, 1, ran);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_EQ(*ran, 9u);
}

TEST(Machine, HostLaunchesAreCheckedAndLeaveNothingBehind) {
  Program program("launches");
  auto* ran = program.allocate<unsigned>(1);
  EXPECT_EQ(program.launch("count", {0, 1, 1}, {1, 1, 1}, ran), 9);
  EXPECT_EQ(program.launch("count_bounded", {1, 1, 1}, {65, 1, 1}, ran), 1);
  EXPECT_EQ(program.machine.counts().host_launches, 0u);
  EXPECT_EQ(program.machine.synchronise_all(), 0);
  EXPECT_EQ(*ran, 0u);
}

TEST(Machine, WorkIsDoneWhenSomebodyWaits) {
  Program program("launches");
  auto* ran = program.allocate<unsigned>(1);
  unsigned seen = 99;
  program.launch("count", {4, 1, 1}, {32, 1, 1}, ran);
  program.machine.enqueue(kLegacyStream, [&] { seen = *ran; });
  EXPECT_EQ(*ran, 0u);
  EXPECT_EQ(seen, 99u);
  const EventId event = program.machine.create_event();
  program.machine.record(event, kLegacyStream);
  EXPECT_EQ(program.machine.synchronise_event(event), 0);
  EXPECT_EQ(seen, 4u);
}

TEST(Machine, PollingEnds) {
  for (const MachineOptions& options : many_options(false, 2)) {
    SCOPED_TRACE(describe(options));
    Program program("launches", options);
    auto* ran = program.allocate<unsigned>(1);
    const EventId event = program.machine.create_event();
    const StreamId stream = program.machine.create_stream(StreamFlags::NonBlocking);
    program.launch_in(stream, "tree", {1, 1, 1}, {32, 1, 1}, 5, ran);
    program.machine.record(event, stream);
    int polls = 0;
    while (!program.machine.is_event_complete(event) && polls < 100000) ++polls;
    EXPECT_EQ(*ran, 364u);
    EXPECT_LT(polls, 100000);
    EXPECT_TRUE(program.machine.is_complete(stream));
  }
}

// A kernel that waits for another stream's work: the machine goes on with both.
TEST(Machine, StreamsRunTogether) {
  for (const MachineOptions& options : many_options(true, 3)) {
    SCOPED_TRACE(describe(options));
    Program program("launches", options);
    auto* flag = program.allocate<int>(1);
    const StreamId a = program.machine.create_stream(StreamFlags::NonBlocking),
                   b = program.machine.create_stream(StreamFlags::NonBlocking);
    program.launch_in(a, "wait_for_flag", {1, 1, 1}, {1, 1, 1}, flag);
    program.launch_in(b, "write_to", {1, 1, 1}, {1, 1, 1}, flag);
    EXPECT_EQ(program.machine.synchronise(a), 0) << program.machine.error_text();
  }
}

TEST(Machine, ADeadlockIsReportedWithItsPlaces) {
  Program program("launches");
  ASSERT_EQ(program.launch("barrier_alone", {1, 1, 1}, {32, 1, 1}), 0);
  EXPECT_EQ(program.machine.synchronise_all(), 702);
  EXPECT_THAT(program.machine.error_text(), HasSubstr("barrier_alone"));
}

TEST(Machine, AnErrorIsSticky) {
  Program program("launches");
  auto* ran = program.allocate<unsigned>(1);
  auto* good = program.allocate<int>(1);
  const StreamId other = program.machine.create_stream(StreamFlags::NonBlocking);
  program.launch("launch_write_to", {1, 1, 1}, {1, 1, 1}, reinterpret_cast<int*>(pointer_to(16)));
  EXPECT_EQ(program.machine.synchronise_all(), 700);
  const std::string text = program.machine.error_text();
  EXPECT_THAT(text, HasSubstr("write_to"));
  EXPECT_EQ(program.machine.error_code(), 700);
  EXPECT_EQ(program.launch("count", {1, 1, 1}, {1, 1, 1}, ran), 700);
  EXPECT_EQ(program.launch_in(other, "write_to", {1, 1, 1}, {1, 1, 1}, good), 700);
  EXPECT_EQ(program.machine.synchronise(other), 700);
  EXPECT_TRUE(program.machine.is_complete(other));
  EXPECT_EQ(*ran, 0u);
  EXPECT_EQ(program.machine.error_text(), text);
}

TEST(Machine, ARunawayIsGivenUp) {
  Program program("launches", scheduled(ScheduleKind::Fast));
  program.launch("wait_for_flag", {1, 1, 1}, {1, 1, 1}, program.allocate<int>(1));
  EXPECT_EQ(program.machine.synchronise_all(), 702);
  EXPECT_THAT(program.machine.error_text(), HasSubstr("wait_for_flag"));
}

TEST(Machine, AnImageIsUnloadedWithItsVariables) {
  Program program("launches");
  auto* ran = program.allocate<unsigned>(1);
  program.launch("count", {1, 1, 1}, {1, 1, 1}, ran);
  const uint64_t address = program.image->variables.front().address;
  EXPECT_NE(program.machine.memory().find(address, 1), nullptr);
  program.machine.unload(program.image);
  EXPECT_EQ(*ran, 1u);  // what was running is done first
  EXPECT_EQ(program.machine.memory().find(address, 1), nullptr);
}

TEST(Machine, TheSameSeedGivesTheSameRun) {
  for (const MachineOptions& options : many_options(true, 2)) {
    const auto steps = [&options] {
      Program program("launches", options);
      auto* ran = program.allocate<unsigned>(1);
      program.launch("tree", {1, 1, 1}, {32, 1, 1}, 4, ran);
      EXPECT_EQ(program.machine.synchronise_all(), 0);
      return program.machine.executor().steps();
    };
    EXPECT_EQ(steps(), steps()) << describe(options);
  }
}

}  // namespace
}  // namespace klap::emulator
