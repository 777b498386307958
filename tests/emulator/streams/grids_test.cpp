// When grids are finished, and the order of what device code launches, with grids that end when told to.
#include <gmock/gmock.h>

#include <array>

#include "emulator/device_runtime/device_runtime_streams.h"
#include "recorder.h"

namespace klap::emulator {
namespace {

using ::testing::ElementsAre;

class GridsTest : public ::testing::Test {
 protected:
  using Run = std::shared_ptr<GridOperation>;
  // Launches by `thread` of a block into a stream.
  Run launch(const std::string& name, const Run& launcher, uint64_t stream, uint64_t block = 0,
             uint32_t thread = 0, bool own = false) {
    DeviceStream where;
    EXPECT_TRUE(DeviceStreams::find(streams.block(block), thread, stream, own, where));
    auto child = recorder.grid(name, launcher.get());
    streams.put(where, child, *launcher);
    begin_all(recorder.operations);
    return child;
  }
  [[nodiscard]] const std::vector<std::string>& started() const { return recorder.started; }

  GridRecorder recorder;
  DeviceStreams streams{recorder.operations, recorder.grids};
};

TEST_F(GridsTest, AGridIsFinishedAfterItsChildren) {
  const Run parent = recorder.running("parent");
  const Run child = launch("child", parent, kDeviceFireAndForget);
  const Run grandchild = launch("grandchild", child, kDeviceFireAndForget);
  EXPECT_EQ(recorder.grids.pending(), 2u);
  recorder.exit(parent);
  recorder.exit(child);
  EXPECT_FALSE(child->finished);
  EXPECT_FALSE(parent->is_finished());
  recorder.exit(grandchild);
  EXPECT_TRUE(child->finished);
  EXPECT_TRUE(parent->finished);
  EXPECT_TRUE(parent->is_finished());
  EXPECT_EQ(recorder.grids.pending(), 0u);
}

TEST_F(GridsTest, AChildThatEndsFirstDoesNotEndTheParent) {
  const Run parent = recorder.running("parent");
  const Run child = launch("child", parent, kDeviceFireAndForget);
  recorder.exit(child);
  EXPECT_FALSE(parent->finished);
  recorder.exit(parent);
  EXPECT_TRUE(parent->finished);
}

TEST_F(GridsTest, TheNullStreamOfABlockIsInOrderWithDescendants) {
  const Run parent = recorder.running("parent");
  const Run a = launch("a", parent, kDeviceNullStream, 7, 0);
  launch("b", parent, kDeviceNullStream, 7, 31);
  const Run below = launch("below a", a, kDeviceFireAndForget, 8);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "below a"));
  recorder.exit(a);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "below a"));
  recorder.exit(below);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "below a", "b"));
}

TEST_F(GridsTest, NullStreamsOfTwoBlocksAreApart) {
  const Run parent = recorder.running("parent");
  launch("a", parent, kDeviceNullStream, 1);
  launch("b", parent, kDeviceNullStream, 2);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b"));
}

TEST_F(GridsTest, EveryThreadHasAStreamOfItsOwn) {
  const Run parent = recorder.running("parent");
  const Run a = launch("a", parent, kDevicePerThreadStream, 0, 0);
  launch("b", parent, kDevicePerThreadStream, 0, 1);
  launch("c", parent, kDeviceNullStream, 0, 0, true);  // _ptsz: the thread's own
  launch("d", parent, kDeviceNullStream, 0, 0);        // the block's
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b", "d"));
  recorder.exit(a);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b", "d", "c"));
}

TEST_F(GridsTest, FireAndForgetWaitsForNothing) {
  const Run parent = recorder.running("parent");
  launch("a", parent, kDeviceFireAndForget);
  launch("b", parent, kDeviceFireAndForget);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b"));
}

TEST_F(GridsTest, ACreatedStreamIsInOrderAndBelongsToItsBlock) {
  const Run parent = recorder.running("parent");
  const uint64_t s = streams.create_stream(streams.block(1));
  const Run a = launch("a", parent, s, 1, 0);
  launch("b", parent, s, 1, 5);
  EXPECT_THAT(started(), ElementsAre("parent", "a"));
  recorder.exit(a);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b"));
  DeviceStream where;
  EXPECT_FALSE(DeviceStreams::find(streams.block(2), 0, s, false, where));
  EXPECT_FALSE(DeviceStreams::find(streams.block(1), 0, 5, false, where));
}

TEST_F(GridsTest, TailLaunchesComeAfterEverythingElseAndInOrder) {
  const Run parent = recorder.running("parent");
  const Run first = launch("tail 1", parent, kDeviceTailLaunch, 0, 0);
  const Run second = launch("tail 2", parent, kDeviceTailLaunch, 3, 9);
  const Run child = launch("child", parent, kDeviceFireAndForget);
  recorder.exit(parent);
  EXPECT_THAT(started(), ElementsAre("parent", "child"));
  recorder.exit(child);
  EXPECT_THAT(started(), ElementsAre("parent", "child", "tail 1"));
  recorder.exit(first);
  EXPECT_THAT(started(), ElementsAre("parent", "child", "tail 1", "tail 2"));
  EXPECT_FALSE(parent->finished);
  recorder.exit(second);
  EXPECT_TRUE(parent->finished);
}

TEST_F(GridsTest, ATailLaunchWaitsForTheBlocksEvenWithoutChildren) {
  const Run parent = recorder.running("parent");
  launch("tail", parent, kDeviceTailLaunch);
  EXPECT_THAT(started(), ElementsAre("parent"));
  recorder.exit(parent);
  EXPECT_THAT(started(), ElementsAre("parent", "tail"));
}

TEST_F(GridsTest, TailLaunchesOfATailLaunchComeBeforeTheNext) {
  const Run parent = recorder.running("parent");
  const Run first = launch("tail 1", parent, kDeviceTailLaunch);
  launch("tail 2", parent, kDeviceTailLaunch);
  recorder.exit(parent);
  const Run inner = launch("inner", first, kDeviceTailLaunch, 1);
  recorder.exit(first);
  EXPECT_THAT(started(), ElementsAre("parent", "tail 1", "inner"));
  recorder.exit(inner);
  EXPECT_THAT(started(), ElementsAre("parent", "tail 1", "inner", "tail 2"));
}

TEST_F(GridsTest, TheNextInAStreamWaitsForTailLaunchesOfTheOneBefore) {
  const Run parent = recorder.running("parent");
  const Run a = launch("a", parent, kDeviceNullStream);
  launch("b", parent, kDeviceNullStream);
  const Run tail = launch("tail of a", a, kDeviceTailLaunch, 1);
  recorder.exit(a);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "tail of a"));
  recorder.exit(tail);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "tail of a", "b"));
}

TEST_F(GridsTest, AnEventOrdersTwoStreams) {
  const Run parent = recorder.running("parent");
  DeviceBlock& block = streams.block(0);
  const uint64_t s = streams.create_stream(block), t = streams.create_stream(block);
  const uint64_t event = streams.create_event(block);
  const Run a = launch("a", parent, s);
  DeviceStream from, to, tail;
  ASSERT_TRUE(DeviceStreams::find(block, 0, s, false, from));
  ASSERT_TRUE(DeviceStreams::find(block, 0, t, false, to));
  ASSERT_TRUE(DeviceStreams::find(block, 0, kDeviceTailLaunch, false, tail));
  EXPECT_TRUE(DeviceStreams::record(block, event, from));
  EXPECT_FALSE(DeviceStreams::record(block, event, tail));
  EXPECT_FALSE(DeviceStreams::record(block, event + 16, from));
  EXPECT_TRUE(streams.wait(block, event, to));
  launch("b", parent, t);
  EXPECT_THAT(started(), ElementsAre("parent", "a"));
  recorder.exit(a);
  EXPECT_THAT(started(), ElementsAre("parent", "a", "b"));
}

TEST_F(GridsTest, DeepNestingEndsFromTheInside) {
  constexpr int kDepth = 3000;
  std::vector<Run> runs{recorder.running("0")};
  for (int depth = 1; depth < kDepth; ++depth)
    runs.push_back(launch(std::to_string(depth), runs.back(), kDeviceFireAndForget));
  for (const Run& run : runs) recorder.exit(run);
  EXPECT_TRUE(runs.front()->finished);
  EXPECT_EQ(recorder.operations.unfinished(), 0u);
}

}  // namespace
}  // namespace klap::emulator
