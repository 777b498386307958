// What is kept about a CUDA context goes with it, and launches in the next one begin anew.
#include "runtime/context_ends.h"

#include "redirected.h"
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
