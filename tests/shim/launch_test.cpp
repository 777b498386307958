// Launching, as far as it depends on the entry point: conventions for streams, forms of parameters,
// attributes. The decisions themselves are tested in tests/runtime/launch.
#include <gmock/gmock.h>

#include <set>

#include "run_program.h"

namespace klap::shim_test {
namespace {

TEST(Launch, PerThreadEntryPointsUseThePerThreadStream) {
  const Outcome run = run_program("launching", {"ptsz"});
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ("CVCVC", roles(run));
  std::set<std::string> streams;
  std::vector<std::string> queues;
  for (const Call& launch : run.launches()) {
    streams.insert(launch["stream"]);
    const std::string params = launch["params"];
    const bool is_consumer = role(launch) == Role::Consumer;
    queues.push_back(is_consumer ? params : params.substr(params.size() - 49 - 17, 17));
  }
  EXPECT_EQ(std::set<std::string>{"0x2"}, streams);
  EXPECT_EQ(queues[1], queues[2]);
  EXPECT_EQ(queues[3], queues[4]);
  EXPECT_NE(queues[1], queues[3]) << "the queue's other head";
}

TEST(Launch, ExtendedLaunches) {
  const Outcome run = run_program("launching", {"launch_ex"});
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ("CVCVCO", roles(run));
  const auto launches = run.launches();
  EXPECT_EQ("", launches[1]["attributes"]);
  EXPECT_EQ("8=-2;", launches[3]["attributes"]);
  EXPECT_EQ("8=-2;", launches[4]["attributes"]);
  EXPECT_EQ("cuLaunchKernelEx", launches[5].name());
}

// The consumer is tried on the empty queue in the ordinary way and as a dependent, in the same stream.
TEST(Launch, ConsumersAreDependentsOfTheirParents) {
  Options options;
  options.environment["KLAP_OPTIMISE"] = "+dependent_launch";
  const Outcome run = run_program("launching", {"ptsz"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ("CCVCVC", roles(run));
  std::set<std::string> streams;
  for (const Call& launch : run.launches()) streams.insert(launch["stream"]);
  EXPECT_EQ(std::set<std::string>{"0x2"}, streams);
  const auto launches = run.launches();
  for (const size_t consumer : {1, 3, 5}) EXPECT_EQ("6=1;", launches[consumer]["attributes"]);
  for (const size_t other : {0, 2, 4}) EXPECT_EQ("", launches[other]["attributes"]);
}

TEST(Launch, PackedParameters) {
  const Outcome run = run_program("launching", {"extra"});
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ("CVC", roles(run));
  const auto launches = run.launches();
  EXPECT_EQ("0010000000000000:05000000:" + added_parameters(launches[1], launches[2]), launches[1]["params"]);
}

TEST(Launch, CapturedLaunchesRunTheOriginalAndSoDoLaterOnes) {
  const Outcome run = run_program("launching", {"capture"});
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ("OO", roles(run));
  EXPECT_EQ("1", run.launches()[0]["captured"]);
  EXPECT_EQ("1", run.called("cuStreamEndCapture")[0]["status"]);  // still active, not invalidated
}

TEST(Launch, QueueFollowsTheStreamsLife) {
  const Outcome run = run_program("launching", {"streams"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVCVCVC", roles(run));
  EXPECT_EQ(1u, run.called("cuMemAlloc_v2").size());
}

// Of each launch its own, in the stream; in a stream that is captured nothing is allocated.
TEST(Launch, QueueIsTheLaunchsOwnWhereThatIsAskedFor) {
  Options options;
  options.environment = {{"KLAP_BUFFER", "malloc"}};
  const Outcome run = run_program("launching", {"streams"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVCVCVC", roles(run));
  EXPECT_TRUE(run.called("cuMemAlloc_v2").empty());
  const auto taken = run.called("cuMemAllocFromPoolAsync"), given = run.called("cuMemFreeAsync");
  ASSERT_EQ(3u, taken.size());
  ASSERT_EQ(3u, given.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i]["address"], given[i]["address"]);
    EXPECT_EQ(taken[i]["stream"], run.launches()[1 + 2 * i]["stream"]);
    EXPECT_EQ(taken[i]["stream"], given[i]["stream"]);
  }
  const Outcome captured = run_program("launching", {"capture"}, options);
  EXPECT_EQ("OO", roles(captured));
  EXPECT_TRUE(captured.called("cuMemAllocFromPoolAsync").empty());
  EXPECT_EQ("1", captured.called("cuStreamEndCapture")[0]["status"]);
}

TEST(Launch, SettingsAreMirrored) {
  const Outcome run = run_program("launching", {"attributes"});
  EXPECT_EQ(0, run.status) << run.error;
  for (const char* function : {"cuKernelSetAttribute", "cuFuncSetAttribute"}) {
    const auto set = run.called(function);
    ASSERT_EQ(4u, set.size()) << "children run thread by thread, in blocks, or in the parent's own kernel";
    EXPECT_EQ("parent", set[0]["kernel"]);
    for (const size_t variant : {1, 2, 3}) {
      EXPECT_NE("parent", set[variant]["kernel"]);
      EXPECT_EQ(set[0]["value"], set[variant]["value"]);
    }
    EXPECT_NE(set[1]["kernel"], set[2]["kernel"]);
  }
}

TEST(Launch, CooperativeKernelsRunTheOriginal) {
  const Outcome run = run_program("launching", {"cooperative"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("O", roles(run));
}

}  // namespace
}  // namespace klap::shim_test
