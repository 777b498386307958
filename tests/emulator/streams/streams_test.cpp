// What the order of streams and events promises, and that nothing more is promised.
#include "emulator/streams/streams.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "recorder.h"
#include "support/error.h"

namespace klap::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StreamsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Named> put(StreamId stream, const std::string& name, bool stays = false) {
    auto operation = std::make_shared<Named>(log, name, stays);
    streams.enqueue(stream, operation);
    return operation;
  }
  std::vector<std::string> log;
  Operations operations{true, 1};
  Streams streams{operations};
};

TEST_F(StreamsTest, NothingIsDoneBeforeSomebodyAsks) {
  put(kLegacyStream, "a");
  EXPECT_THAT(log, IsEmpty());
  EXPECT_FALSE(streams.is_complete(kLegacyStream));
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a"));
  EXPECT_TRUE(streams.is_complete(kLegacyStream));
}

TEST_F(StreamsTest, AnOperationWaitsForTheOneBeforeIt) {
  const StreamId s = streams.create(StreamFlags::NonBlocking);
  const auto a = put(s, "a", true);
  put(s, "b");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a"));
  operations.finish(*a);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a", "b"));
}

TEST_F(StreamsTest, StreamsDoNotWaitForEachOther) {
  const StreamId s = streams.create(StreamFlags::Default), t = streams.create(StreamFlags::Default);
  put(s, "a", true);
  put(t, "b");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a", "b"));
  EXPECT_TRUE(streams.is_complete(t));
  EXPECT_FALSE(streams.is_complete(s));
}

TEST_F(StreamsTest, TheDefaultStreamWaitsForBlockingStreamsOnly) {
  const StreamId blocking = streams.create(StreamFlags::Default),
                 free = streams.create(StreamFlags::NonBlocking);
  const auto a = put(blocking, "blocking", true);
  put(free, "free", true);
  put(kLegacyStream, "default");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("blocking", "free"));
  operations.finish(*a);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("blocking", "free", "default"));
}

TEST_F(StreamsTest, BlockingStreamsWaitForTheDefaultStreamOnly) {
  const StreamId blocking = streams.create(StreamFlags::Default),
                 free = streams.create(StreamFlags::NonBlocking);
  const auto a = put(kLegacyStream, "default", true);
  put(blocking, "blocking");
  put(free, "free");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("default", "free"));
  operations.finish(*a);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("default", "free", "blocking"));
}

TEST_F(StreamsTest, TheDefaultStreamWaitsForADestroyedBlockingStream) {
  const StreamId s = streams.create(StreamFlags::Default);
  const auto a = put(s, "a", true);
  begin_all(operations);
  streams.destroy(s);
  EXPECT_FALSE(streams.is_complete(kLegacyStream));
  put(kLegacyStream, "default");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a"));
  operations.finish(*a);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a", "default"));
}

TEST_F(StreamsTest, AStreamWaitsForAnEventOfAnother) {
  const StreamId s = streams.create(StreamFlags::NonBlocking), t = streams.create(StreamFlags::NonBlocking);
  const EventId event = streams.create_event();
  const auto a = put(s, "a", true);
  streams.record(event, s);
  put(s, "after the event", true);
  streams.wait(t, event);
  put(t, "b");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a"));
  operations.finish(*a);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a", "after the event", "b"));
}

TEST_F(StreamsTest, AWaitIsForTheRecordBeforeIt) {
  const StreamId s = streams.create(StreamFlags::NonBlocking), t = streams.create(StreamFlags::NonBlocking);
  const EventId event = streams.create_event();
  streams.record(event, s);
  streams.wait(t, event);
  put(s, "a", true);
  streams.record(event, s);  // again, later: not waited for
  put(t, "b");
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("a", "b"));
  EXPECT_FALSE(streams.event(event)->is_finished());
}

TEST_F(StreamsTest, AnEventThatWasNotRecordedHoldsNobody) {
  const EventId event = streams.create_event();
  streams.wait(kLegacyStream, event);
  EXPECT_TRUE(streams.is_complete(kLegacyStream));
  EXPECT_EQ(streams.event(event), nullptr);
}

TEST_F(StreamsTest, UnknownHandlesAreRefused) {
  EXPECT_THROW(put(99, "a"), Error);
  EXPECT_THROW(streams.destroy(kLegacyStream), Error);
  EXPECT_THROW(streams.record(99, kLegacyStream), Error);
}

TEST_F(StreamsTest, WorkThatThrowsIsDone) {
  streams.enqueue(kLegacyStream, std::make_shared<HostWork>([] { throw std::runtime_error("no"); }));
  put(kLegacyStream, "next");
  EXPECT_THROW(operations.begin_one(), std::runtime_error);
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("next"));
}

TEST_F(StreamsTest, WorkMayAddWork) {
  streams.enqueue(kLegacyStream, std::make_shared<HostWork>([this] { put(kLegacyStream, "inner"); }));
  begin_all(operations);
  EXPECT_THAT(log, ElementsAre("inner"));
}

TEST_F(StreamsTest, WhatTheHostHasNotWaitedForIsNotCovered) {
  const StreamId s = streams.create(StreamFlags::Default), t = streams.create(StreamFlags::NonBlocking);
  put(s, "a");
  EXPECT_FALSE(streams.all_covered());
  streams.covered(s);
  EXPECT_TRUE(streams.all_covered());
  put(s, "b");
  streams.covered(kLegacyStream);
  EXPECT_TRUE(streams.all_covered());
  put(t, "c");
  streams.covered(kLegacyStream);
  EXPECT_FALSE(streams.all_covered());
}

// Three streams of two operations: every interleaving is allowed, and the seed finds many; in each, the order
// of a stream holds.
TEST(Schedule, TheSeedDecidesAmongStreams) {
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto run = [seed] {
      std::vector<std::string> log;
      Operations operations(false, seed);
      Streams streams(operations);
      for (const std::string name : {"a", "b", "c"}) {
        const StreamId s = streams.create(StreamFlags::NonBlocking);
        for (const std::string number : {"1", "2"})
          streams.enqueue(s, std::make_shared<Named>(log, name + number));
      }
      begin_all(operations);
      return log;
    };
    const std::vector<std::string> log = run();
    EXPECT_EQ(log, run());
    for (const std::string name : {"a", "b", "c"})
      EXPECT_LT(std::find(log.begin(), log.end(), name + "1"), std::find(log.begin(), log.end(), name + "2"));
    seen.insert(log);
  }
  EXPECT_GT(seen.size(), 60u);  // of 90
}

TEST(Schedule, ClearForgetsWhatWaits) {
  std::vector<std::string> log;
  Operations operations(true, 1);
  const auto a = std::make_shared<Named>(log, "a", true), b = std::make_shared<Named>(log, "b");
  operations.add(a, {});
  operations.add(b, std::array<OperationRef, 1>{a});
  begin_all(operations);
  operations.clear();
  operations.finish(*a);
  EXPECT_FALSE(operations.can_begin());
  EXPECT_EQ(operations.unfinished(), 0u);
  EXPECT_THAT(log, ElementsAre("a"));
}

}  // namespace
}  // namespace klap::emulator
