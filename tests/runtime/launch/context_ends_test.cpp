// What is kept about a CUDA context goes with it, and launches in the next one begin anew.
#include "runtime/context_ends.h"

#include "redirected.h"
#include "runtime/graphs/graph_memory.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {
namespace {

class ContextEndsTest : public RedirectTest {
 protected:
  // Ends the current context as the hook of cuCtxDestroy does.
  void end_context() {
    const auto id = id_of_context(context_);
    ASSERT_TRUE(id);
    fake<PFN_cuCtxDestroy_v4000>("cuCtxDestroy_v2")(context_);
    context_ended(*id);
  }
};

TEST_F(ContextEndsTest, QueuesOfItsStreamsGo) {
  for (int i = 0; i < 3; ++i) {
    Launch launch = launch_of(parent_);
    launch.stream = new_stream();
    expect_redirected(launch);
  }
  EXPECT_EQ(3u, LaunchContexts::instance().size());
  const uint64_t ended = LaunchContexts::instance().streams_ended();
  end_context();
  EXPECT_TRUE(LaunchContexts::instance().empty());
  EXPECT_EQ(ended + 3, LaunchContexts::instance().streams_ended());
}

TEST_F(ContextEndsTest, OnesThatGoOnAreLeftAlone) {
  expect_redirected(launch_of(parent_));
  const CUcontext first = context_;
  new_context();
  expect_redirected(launch_of(parent_));
  EXPECT_EQ(2u, LaunchContexts::instance().size());
  end_context();
  EXPECT_EQ(1u, LaunchContexts::instance().size());
  fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(first);
  forget_calls();
  expect_redirected(launch_of(parent_));
  EXPECT_EQ((Names{"__klap_parent", "__klap_consumer"}), launched());
}

TEST_F(ContextEndsTest, LaunchesInTheNextOneBeginAnew) {
  for (int i = 0; i < 5; ++i) {
    forget_calls();
    expect_redirected(launch_of(parent_));
    EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
    end_context();
    new_context();
  }
  EXPECT_TRUE(LaunchContexts::instance().empty());
}

TEST_F(ContextEndsTest, QueuesOfItsGraphsGo) {
  const uint64_t id = *id_of_context(context_);
  auto memory = std::make_shared<GraphMemory>();
  memory->context_id = id;
  memory->queues.push_back(LaunchContexts::instance().make_for_node(id, new_stream()));
  const std::weak_ptr<LaunchContext> queues = memory->queues.front();
  ASSERT_EQ(nullptr, queues.lock()->make_work_queue_room(16, 1, 1 << 24, jit::Buffer::Pool));
  give_back_when_unused(std::move(memory));
  forget_calls();
  end_context();
  EXPECT_TRUE(queues.expired());
  EXPECT_TRUE(calls("cuEventRecord").empty()) << "its stream is gone";
}

TEST_F(ContextEndsTest, ModulesOfItGo) {
  LoadedImage image;
  const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
  ASSERT_EQ(CUDA_SUCCESS, driver()->module_load_data(&image.module, cubin.data()));
  image.context_id = *id_of_context(context_);
  image.variants = variants();
  Registry::instance().add(image);
  CUfunction function = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, driver()->module_get_function(&function, image.module, "parent"));
  Registry::instance().learn_function(image.module, "parent", function, image.context_id);
  EXPECT_TRUE(Registry::instance().find(function));
  end_context();
  EXPECT_FALSE(Registry::instance().find(function));
  EXPECT_TRUE(Registry::instance().find(parent_)) << "a library's kernels are good in every context";
}

// The device's primary context, current, with a green context that is a part of it.
class GreenContextTest : public ContextEndsTest {
 protected:
  GreenContextTest() {
    EXPECT_EQ(CUDA_SUCCESS,
              fake<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain")(&primary_, 0));
    make_current(primary_);
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate")(
                                &green_, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT_EQ(CUDA_SUCCESS,
              fake<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate")(&stream_, green_, 0, 0));
  }
  ~GreenContextTest() override { fake<PFN_cuDevicePrimaryCtxReset_v11000>("cuDevicePrimaryCtxReset_v2")(0); }
  static void make_current(CUcontext context) { fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context); }
  void make_green_current() {
    CUcontext context = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, driver()->ctx_from_green_ctx(&context, green_));
    make_current(context);
  }
  void launch_there() {
    Launch launch = launch_of(parent_);
    launch.stream = stream_;
    expect_redirected(launch);
  }

  CUcontext primary_ = nullptr;
  CUgreenCtx green_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(GreenContextTest, ItsStreamsAreServedWhicheverIsCurrent) {
  launch_there();
  make_green_current();
  launch_there();
  EXPECT_EQ(2u, LaunchContexts::instance().size());
}

// Nothing may be asked about a stream that is gone, whichever context was current in its launches.
TEST_F(GreenContextTest, AStreamThatEndsIsForgottenForBoth) {
  launch_there();
  make_green_current();
  launch_there();
  make_current(primary_);
  stream_about_to_end(stream_);
  EXPECT_TRUE(LaunchContexts::instance().empty());
}

TEST_F(GreenContextTest, ItsStreamsAreForgottenWhenItEnds) {
  launch_there();
  expect_redirected(launch_of(parent_));
  EXPECT_EQ(2u, LaunchContexts::instance().size());
  const auto id = green_context_about_to_end(green_);
  ASSERT_TRUE(id);
  EXPECT_EQ(CUDA_SUCCESS, driver()->green_ctx_destroy(green_));
  context_ended(*id);
  EXPECT_EQ(1u, LaunchContexts::instance().size()) << "the primary context's own stream";
}

TEST_F(GreenContextTest, OnesOfOtherContextsAreNoPartOfIt) {
  new_context();
  Launch launch = launch_of(parent_);
  launch.stream = stream_;
  EXPECT_EQ(std::nullopt, redirect_launch(launch)) << "the current context is not the primary one";
}

TEST_F(ContextEndsTest, APrimaryContextIsAskedForOnlyWhereItIsActive) {
  EXPECT_EQ(std::nullopt, id_of_primary_context(0));
  EXPECT_TRUE(calls("cuDevicePrimaryCtxRetain").empty());
  CUcontext primary = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, fake<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain")(&primary, 0));
  EXPECT_EQ(id_of_context(primary), id_of_primary_context(0));
  EXPECT_EQ(1u, calls("cuDevicePrimaryCtxRelease_v2").size());
  fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(primary);
  expect_redirected(launch_of(parent_));
  const uint64_t id = *id_of_context(primary);
  primary_context_released(0, id);  // somebody else has it
  EXPECT_EQ(1u, LaunchContexts::instance().size());
  fake<PFN_cuDevicePrimaryCtxReset_v11000>("cuDevicePrimaryCtxReset_v2")(0);
  primary_context_released(0, id);
  EXPECT_TRUE(LaunchContexts::instance().empty());
}

}  // namespace
}  // namespace klap::runtime
