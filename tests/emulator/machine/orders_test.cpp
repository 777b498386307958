// MemoryModel of what device code launches, seen from inside the children: what is promised always holds, and
// what is not promised is broken by some schedule.
#include <gmock/gmock.h>

#include <set>

#include "program.h"

namespace klap::emulator {
namespace {

struct Times {
  unsigned clock;
  unsigned begin[64], end[64];
};

struct Setting {
  const char* kernel;
  Dim3 grid, block;
};

// Runs it, and gives the times of its children.
Times run(const MachineOptions& options, const Setting& setting) {
  Program program("orders", options);
  Times* times = program.allocate<Times>(1);
  EXPECT_EQ(program.launch(setting.kernel, setting.grid, setting.block, times), 0);
  EXPECT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_THAT(program.findings, ::testing::IsEmpty());
  return *times;
}

struct Pair {
  int first, second;
  bool operator<(const Pair& other) const {
    return first != other.first ? first < other.first : second < other.second;
  }
};

// `promised`: the first ends before the second begins. `free`: not promised, in either order; some schedule
// lets them overlap or turns them round.
void check(const Setting& setting, const std::vector<Pair>& promised, const std::vector<Pair>& free) {
  std::set<Pair> broken;
  for (const bool checks : {false, true}) {
    for (const MachineOptions& options : many_options(checks, 4)) {
      SCOPED_TRACE(describe(options));
      const Times t = run(options, setting);
      for (const Pair& p : promised) {
        EXPECT_GT(t.begin[p.first], 0u) << p.first;
        EXPECT_LT(t.end[p.first], t.begin[p.second]) << p.first << " before " << p.second;
        EXPECT_LT(t.begin[p.second], t.end[p.second]);
      }
      for (const Pair& p : free) {
        EXPECT_GT(t.end[p.first], 0u) << p.first;
        EXPECT_GT(t.end[p.second], 0u) << p.second;
        if (t.end[p.first] > t.begin[p.second]) broken.insert(p);
      }
    }
  }
  for (const Pair& p : free)
    EXPECT_TRUE(broken.count(p)) << p.first << " always came before " << p.second
                                 << " though nothing says so";
}

// Numbers in orders.cu: thread n launches 4n (whose own child is 4n + 1), then 4n + 2.
TEST(Orders, NullStream) {
  check({"null_stream", {1, 1, 1}, {2, 1, 1}}, {{0, 2}, {1, 2}, {4, 6}, {5, 6}}, {{0, 1}, {1, 0}});
}

TEST(Orders, NullStreamOfOneBlockIsOneStream) {
  // Two threads of a block: their children never overlap, whichever goes first.
  for (const MachineOptions& options : many_options(false, 4)) {
    SCOPED_TRACE(describe(options));
    const Times t = run(options, {"null_stream", {1, 1, 1}, {2, 1, 1}});
    for (const int a : {0, 1, 2}) {
      for (const int b : {4, 5, 6})
        EXPECT_TRUE(t.end[a] < t.begin[b] || t.end[b] < t.begin[a]) << a << " and " << b;
    }
  }
}

TEST(Orders, NullStreamsOfBlocksAreApart) {
  check({"null_stream", {2, 1, 1}, {1, 1, 1}}, {{0, 2}, {1, 2}, {4, 6}, {5, 6}},
        {{0, 4}, {4, 0}, {2, 4}, {2, 6}});
}

TEST(Orders, PerThreadStreamsAreApart) {
  check({"own_stream", {1, 1, 1}, {2, 1, 1}}, {{0, 2}, {1, 2}, {4, 6}, {5, 6}},
        {{0, 4}, {4, 0}, {2, 6}, {2, 4}});
}

TEST(Orders, FireAndForget) {
  check({"fire_and_forget", {1, 1, 1}, {2, 1, 1}}, {}, {{0, 1}, {1, 0}, {0, 2}, {2, 0}, {1, 3}});
}

TEST(Orders, CreatedStreams) {
  check({"created_streams", {1, 1, 1}, {2, 1, 1}}, {{0, 1}, {4, 5}}, {{0, 2}, {2, 0}, {0, 4}, {1, 2}});
}

TEST(Orders, ACreatedStreamIsSharedByTheBlock) {
  for (const MachineOptions& options : many_options(false, 4)) {
    SCOPED_TRACE(describe(options));
    const Times t = run(options, {"created_streams", {1, 1, 1}, {2, 1, 1}});
    EXPECT_TRUE(t.end[2] < t.begin[6] || t.end[6] < t.begin[2]);
  }
}

TEST(Orders, Events) { check({"by_event", {1, 1, 1}, {1, 1, 1}}, {{0, 1}, {0, 2}}, {{1, 2}, {2, 1}}); }

TEST(Orders, TailLaunches) {
  // 0 is the grid, 1 and 2 its child and grandchild; 10 the first tail launch, with 11 its own tail launch
  // and 12 its child; 13 the second.
  check({"tail_launches", {2, 1, 1}, {32, 1, 1}},
        {{0, 10}, {1, 10}, {2, 10}, {10, 11}, {12, 11}, {10, 13}, {11, 13}, {12, 13}, {10, 12}},
        {{0, 1}, {1, 2}});
}

// What a child writes plainly is seen by the next in its stream and by a tail launch, also with weak memory.
TEST(Orders, WritesAreSeenAlongStreams) {
  for (const MachineOptions& options : many_options(true)) {
    SCOPED_TRACE(describe(options));
    constexpr unsigned kBlocks = 3;
    Program program("orders", options);
    auto* values = program.allocate<unsigned>(kBlocks + 1);
    auto* plain = program.allocate<unsigned>(kBlocks);
    ASSERT_EQ(program.launch("steps", {kBlocks, 1, 1}, {32, 1, 1}, values, plain), 0);
    ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    for (unsigned block = 0; block < kBlocks; ++block) EXPECT_EQ(values[block], 12345u);
    unsigned digits = values[kBlocks], sum = 0;
    for (; digits != 0; digits /= 10) sum += digits % 10;
    EXPECT_EQ(sum, 6u + 9u + 9u);  // one after another, in any order of the blocks
    EXPECT_THAT(program.findings, ::testing::IsEmpty());
  }
}

// The same along everything that ends before something else begins.
TEST(Orders, WritesAreSeenAfterTheEnd) {
  for (const MachineOptions& options : many_options(true)) {
    SCOPED_TRACE(describe(options));
    constexpr unsigned kBlocks = 4;
    Program program("orders", options);
    Machine& machine = program.machine;
    auto* values = program.allocate<unsigned>(2 * kBlocks);
    auto* copy = program.allocate<unsigned>(2 * kBlocks);
    auto* sums = program.allocate<unsigned>(4);
    const StreamId a = machine.create_stream(StreamFlags::NonBlocking),
                   b = machine.create_stream(StreamFlags::NonBlocking);
    const EventId event = machine.create_event();
    program.launch_in(a, "steps_then_sum", {kBlocks, 1, 1}, {32, 1, 1}, values, sums);
    program.launch_in(a, "add_up", {1, 1, 1}, {1, 1, 1}, values, int{2 * kBlocks}, sums + 1);
    machine.record(event, a);
    machine.wait(b, event);
    program.launch_in(b, "copy_then_sum", {1, 1, 1}, {1, 1, 1}, values, copy, int{2 * kBlocks}, sums + 2);
    ASSERT_EQ(machine.synchronise(b), 0) << machine.error_text();
    // Another stream, behind what the host has waited for.
    program.launch_in(a, "add_up", {1, 1, 1}, {1, 1, 1}, copy, int{2 * kBlocks}, sums + 3);
    ASSERT_EQ(machine.synchronise_all(), 0) << machine.error_text();
    EXPECT_EQ(sums[0], 100 * kBlocks + 10);
    EXPECT_EQ(sums[1], 100 * kBlocks + 10);
    EXPECT_EQ(sums[2], 100 * kBlocks + 10 - 1 + 17);
    EXPECT_EQ(sums[3], sums[2]);
    EXPECT_THAT(program.findings, ::testing::IsEmpty());
  }
}

// Two streams that nothing orders: the race is found.
TEST(Orders, UnorderedStreamsRace) {
  MachineOptions options;
  options.executor.order.detect_races = true;
  Program program("orders", options);
  auto* value = program.allocate<unsigned>(1);
  const StreamId a = program.machine.create_stream(StreamFlags::NonBlocking),
                 b = program.machine.create_stream(StreamFlags::NonBlocking);
  program.launch_in(a, "step", {1, 1, 1}, {32, 1, 1}, value, 1u);
  program.launch_in(b, "step", {1, 1, 1}, {32, 1, 1}, value, 2u);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_THAT(program.findings, ::testing::Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace klap::emulator
