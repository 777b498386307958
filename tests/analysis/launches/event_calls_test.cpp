// Calls for events are taken apart, whichever of the functions they call.
#include "analysis/launches/event_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::analysis {
namespace {

std::vector<EventCall> event_calls_of(const Parsed& p) {
  return find_event_calls(p.module, p.facts->function, p.facts->flow, p.facts->data);
}

TEST(EventCalls, HaveTheOperandsOfTheirFunctions) {
  const std::vector<EventCall> calls = event_calls_of(
      Parsed(kernel(call("__cudaCDP2EventCreateWithFlags", {{"b64", "%rd1"}, {"b32", "2"}}) +
                    call("__cudaCDP2EventRecord", {{"b64", "%rd2"}, {"b64", "%rd3"}}) +
                    call("__cudaCDP2StreamWaitEvent_ptsz", {{"b64", "%rd4"}, {"b64", "%rd5"}, {"b32", "0"}}) +
                    call("__cudaCDP2EventDestroy", {{"b64", "%rd6"}}))));
  ASSERT_EQ(4u, calls.size());
  EXPECT_EQ(EventUse::Create, calls[0].use);
  EXPECT_THAT((std::vector{calls[0].event, calls[0].flags, calls[0].result}),
              testing::ElementsAre("%rd1", "2", "%r9"));
  EXPECT_EQ(EventUse::Record, calls[1].use);
  EXPECT_THAT((std::vector{calls[1].event, calls[1].stream}), testing::ElementsAre("%rd2", "%rd3"));
  EXPECT_FALSE(calls[1].stream_zero_is_per_thread);
  EXPECT_EQ(EventUse::Wait, calls[2].use);
  EXPECT_THAT((std::vector{calls[2].event, calls[2].stream}), testing::ElementsAre("%rd5", "%rd4"));
  EXPECT_TRUE(calls[2].stream_zero_is_per_thread);
  EXPECT_EQ(EventUse::Destroy, calls[3].use);
  EXPECT_EQ("%rd6", calls[3].event);
}

TEST(EventCalls, OfOtherFormsAreNotUnderstood) {
  for (const std::string& text : {
           call("__cudaCDP2EventRecordWithFlags", {{"b64", "%rd1"}, {"b64", "%rd2"}, {"b32", "1"}}),
           call("__cudaCDP2EventRecord", {{"b64", "%rd1"}}),
           call("__cudaCDP2EventDestroy", {{"b32", "%r1"}}),
           call("__cudaCDP2StreamDestroy", {{"b64", "%rd1"}}),
       })
    EXPECT_TRUE(event_calls_of(Parsed(kernel(text))).empty()) << text;
}

TEST(EventCalls, AreExpectedWhereAModuleNamesThem) {
  EXPECT_TRUE(may_use_events(
      Parsed(kernel("", ".extern .func (.param .b32 r) __cudaCDP2EventDestroy(.param .b64 a);\n")).module));
  EXPECT_FALSE(may_use_events(
      Parsed(kernel("", ".extern .func (.param .b32 r) __cudaCDP2StreamDestroy(.param .b64 a);\n")).module));
}

}  // namespace
}  // namespace klap::analysis
