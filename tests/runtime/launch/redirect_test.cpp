// Which launches are redirected, what is launched in their place, and what stays.
#include <span>
#include <thread>

#include "redirected.h"

namespace klap::runtime {
namespace {

TEST_F(RedirectTest, LaunchesVariantThenConsumerOnOneQueue) {
  expect_redirected(launch_of(parent_));
  // The consumer runs once on the empty queue before the variant is trusted.
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
  const auto launches = calls("cuLaunchKernel");
  EXPECT_EQ("4,1,1", launches[1]["grid"]);
  EXPECT_EQ("64,1,1", launches[1]["block"]);
  EXPECT_EQ("128,1,1", launches[2]["block"]);
  EXPECT_EQ("2112,1,1", launches[2]["grid"]);  // 132 multiprocessors, 16 blocks of 128 threads on each
  const std::string queue = launches[2]["params"];
  EXPECT_EQ("8877665544332211:ccbbaa99:" + queue, launches[1]["params"]);
  EXPECT_EQ(launches[0]["params"], queue);
}

TEST_F(RedirectTest, SteadyStateOnlyLaunches) {
  expect_redirected(launch_of(parent_));
  forget_calls();
  for (int i = 0; i < 3; ++i) expect_redirected(launch_of(parent_));
  EXPECT_EQ(6u, calls().size());
  EXPECT_EQ((Names{"__klap_parent", "__klap_consumer", "__klap_parent", "__klap_consumer", "__klap_parent",
                   "__klap_consumer"}),
            launched());
}

TEST_F(RedirectTest, UnknownHandlesAreNotTouched) {
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(kernel("child"))));
  EXPECT_TRUE(launched().empty());
}

TEST_F(RedirectTest, PackedParametersArePaddedUpToTheQueue) {
  unsigned char buffer[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  Launch launch = launch_of(other_);
  launch.params = nullptr;
  launch.extra = extra;
  expect_redirected(launch);
  const auto launches = calls("cuLaunchKernel");
  EXPECT_EQ("0102030405060708090a0b0c:0d:" + launches[2]["params"], launches[1]["params"]);
  EXPECT_EQ(13u, bytes);

  bytes = 12;
  expect_left(launch, "parameters missing", "other");
  bytes = 13;
  void* unknown[] = {reinterpret_cast<void*>(7), nullptr, CU_LAUNCH_PARAM_END};
  launch.extra = unknown;
  expect_left(launch, "unknown launch option", "other");
  launch.params = params_;
  launch.extra = extra;
  expect_left(launch, "both parameter forms", "other");
  launch.params = nullptr;
  launch.extra = nullptr;
  expect_left(launch, "parameters missing", "other");
}

TEST_F(RedirectTest, OnlyHarmlessAttributesAreRedirected) {
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -3;
  Launch launch = launch_of(parent_);
  launch.attributes = attributes;
  expect_redirected(launch);
  const auto launches = calls("cuLaunchKernelEx");
  ASSERT_EQ(2u, launches.size());
  EXPECT_EQ("__klap_parent", launches[0]["kernel"]);
  EXPECT_EQ("8=-3;", launches[0]["attributes"]);
  EXPECT_EQ("__klap_consumer", launches[1]["kernel"]);
  EXPECT_EQ("8=-3;", launches[1]["attributes"]);

  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  expect_left(launch, "cooperative launch");
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  expect_left(launch, "cluster launch");
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  expect_left(launch, "launch attribute");
}

// What memory the kernels synchronise with holds for both; how much shared memory the parent would like is
// its own business.
TEST_F(RedirectTest, AttributesGoWhereTheyBelong) {
  CUlaunchAttribute attributes[3] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  attributes[0].value.sharedMemCarveout = 40;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
  attributes[1].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[2].value.programmaticStreamSerializationAllowed = 1;
  Launch launch = launch_of(parent_);
  launch.attributes = attributes;
  expect_redirected(launch);
  const auto launches = calls("cuLaunchKernelEx");
  ASSERT_EQ(2u, launches.size());
  EXPECT_EQ("10=1;14=40;", launches[0]["attributes"]);
  EXPECT_EQ("10=1;", launches[1]["attributes"]);
}

TEST_F(RedirectTest, MoreAttributesThanThereAreAreLeft) {
  CUlaunchAttribute attributes[4] = {};
  for (CUlaunchAttribute& attribute : attributes) attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  Launch launch = launch_of(parent_);
  launch.attributes = std::span(attributes).first(3);
  expect_redirected(launch);
  launch.attributes = attributes;
  expect_left(launch, "launch attribute");
}

// Such a parent may begin early, and need not.
TEST_F(RedirectTest, AParentThatMayBeginEarlyDoesNot) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  Launch launch = launch_of(parent_);
  launch.attributes = {&attribute, 1};
  expect_redirected(launch);
  EXPECT_EQ(0u, calls("cuLaunchKernelEx").size());
}

TEST_F(RedirectTest, CapturedStreamsAreLeft) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(parent_);
  launch.stream = stream;
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect_left(launch, "stream capture");
  launch.stream = nullptr;  // implicitly part of the capture: the driver refuses even the question
  expect_left(launch, "stream capture");
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  launch.stream = stream;
  expect_left(launch, "parents in graphs");  // replays must find the launches they would find natively
}

// Also those of parents that would run as they are without it.
TEST_F(RedirectTest, EveryCapturedParentIsTakenNoteOf) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(of_one_row_);
  launch.stream = stream;
  launch.block[1] = 2;
  expect_left(launch, "order matters here", "of_one_row");
  expect_redirected(launch_of(parent_));
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect_left(launch, "stream capture", "of_one_row");
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  expect_left(launch_of(parent_), "parents in graphs");
}

TEST_F(RedirectTest, AllocatesWhileAnotherThreadCaptures) {
  const CUstream captured = new_stream(CU_STREAM_NON_BLOCKING);
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
  std::thread([&] {
    fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
    expect_redirected(launch_of(parent_));
    CUdeviceptr address = 0;  // the thread's own mode is back
    EXPECT_NE(CUDA_SUCCESS, driver()->mem_alloc(&address, 256));
  }).join();
  CUgraph graph = nullptr;
  // Ended by the plain allocation above, not by the launch.
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(captured, &graph));
}

// To ask whether work is done is forbidden meanwhile, too.
TEST_F(RedirectTest, EndsAStreamWhileAnotherIsCaptured) {
  Launch launch = launch_of(parent_);
  launch.stream = new_stream();
  expect_redirected(launch);
  const CUstream captured = new_stream(CU_STREAM_NON_BLOCKING);
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
  stream_about_to_end(launch.stream);
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(captured, &graph));
}

// It may have been captured by an event of another stream, and joined again.
TEST_F(RedirectTest, EndsAStreamThatIsCaptured) {
  Launch launch = launch_of(parent_);
  launch.stream = new_stream(CU_STREAM_NON_BLOCKING);
  expect_redirected(launch);
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(launch.stream,
                                                                   CU_STREAM_CAPTURE_MODE_RELAXED);
  stream_about_to_end(launch.stream);
  EXPECT_TRUE(LaunchContexts::instance().empty());
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(launch.stream, &graph));
}

// The original's launch returns the same error, and nothing is wrong with the variant.
TEST_F(RedirectTest, AContextThatHasFailedIsNoFaultOfTheVariant) {
  expect_redirected(launch_of(parent_));
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_parent=700", 1);
  expect_left(launch_of(parent_), "context failed");
}

TEST_F(RedirectTest, AContextThatHasFailedIsNoFaultOfTheConsumer) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=700", 1);
  expect_left(launch_of(parent_), "context failed");
}

TEST_F(RedirectTest, VariantThatDoesNotLaunchGivesWayToTheOriginal) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_parent=701@1", 1);
  forget_calls();
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(parent_)));
  EXPECT_EQ((Names{"__klap_consumer"}), launched());  // the proof alone: no records, so no consumer
  expect_redirected(launch_of(parent_));
}

TEST_F(RedirectTest, ConsumerFailureIsTheLaunchsResultAndEndsTheStream) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=700@2+", 1);
  const auto result = redirect_launch(launch_of(parent_));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, *result);
  unsetenv("FAKE_CUDA_FAIL");
  expect_left(launch_of(parent_), "consumer failed earlier in this stream");
  Launch elsewhere = launch_of(parent_);
  elsewhere.stream = new_stream();
  expect_redirected(elsewhere);
}

TEST_F(RedirectTest, ConsumerThatFailsInPassingIsLaunchedAgain) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=2@2", 1);
  expect_redirected(launch_of(parent_));
  unsetenv("FAKE_CUDA_FAIL");
  expect_redirected(launch_of(parent_));
}

TEST_F(RedirectTest, ParentThatLaunchesItsChildrenIsAllThatIsEnqueued) {
  const CUstream stream = new_stream();
  Launch launch = launch_of(launching_);
  launch.stream = stream;
  expect_redirected(launch);
  expect_redirected(launch);
  EXPECT_EQ((Names{"__klap_launching", "__klap_launching"}), launched());
  const auto launches = calls("cuLaunchKernel");
  const KlapQueue queue = decoded(calls("cuMemcpyHtoDAsync_v2")[0]["data"]);
  EXPECT_EQ(4096u, queue.capacity);
  EXPECT_EQ("8877665544332211:ccbbaa99:", launches[0]["params"].substr(0, 26));
  EXPECT_EQ(launches[0]["params"], launches[1]["params"]);
}

TEST_F(RedirectTest, LaunchingParentThatDoesNotLaunchGivesWayToTheOriginal) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_launching=701@1", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(launching_)));
  EXPECT_EQ(Names{}, launched());
  expect_redirected(launch_of(launching_));
}

}  // namespace
}  // namespace klap::runtime
