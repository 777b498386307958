// Parents that are their own consumers: when that kernel is launched, in which block and grid, and what
// happens where it cannot be.
#include <nlohmann/json.hpp>

#include "fake_driver.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/launch/fused_launch.h"
#include "runtime/stats.h"

namespace klap::runtime {
namespace {

using Names = std::vector<std::string>;
using Extents = std::array<unsigned, 3>;

// ---- extents ----

Extents extents_of(const unsigned (&extents)[3]) { return {extents[0], extents[1], extents[2]}; }

Launch launch_in(const Extents& block, const Extents& grid = {1, 1, 1}) {
  Launch launch;
  std::ranges::copy(block, launch.block);
  std::ranges::copy(grid, launch.grid);
  return launch;
}

// The block for children that need so many threads; 0x0x0 if there is none.
Extents block_for(const Extents& block, uint32_t needed, bool may_grow, unsigned most = 1024) {
  jit::Variant variant;
  variant.fused_threads = needed;
  variant.more_threads = may_grow;
  const auto made = fused_launch(variant, launch_in(block), {.multiprocessors = 0, .threads = most});
  return made ? extents_of(made->block) : Extents{0, 0, 0};
}

TEST(FusedLaunch, TakesTheProgramsBlockWhereItIsLargeEnough) {
  EXPECT_EQ((Extents{64, 1, 1}), block_for({64, 1, 1}, 64, false));
  EXPECT_EQ((Extents{8, 4, 2}), block_for({8, 4, 2}, 64, false));
  EXPECT_EQ((Extents{256, 1, 1}), block_for({256, 1, 1}, 64, true));
  EXPECT_EQ((Extents{0, 0, 0}), block_for({63, 1, 1}, 64, false));
}

TEST(FusedLaunch, AddsRowsOrLayersToBlocks) {
  EXPECT_EQ((Extents{1, 256, 1}), block_for({1, 1, 1}, 64, true)) << "some more than are needed";
  EXPECT_EQ((Extents{1, 64, 1}), block_for({1, 1, 1}, 64, true, 64)) << "unless there may be no more";
  EXPECT_EQ((Extents{7, 37, 1}), block_for({7, 1, 1}, 64, true));
  EXPECT_EQ((Extents{8, 32, 1}), block_for({8, 2, 1}, 64, true));
  EXPECT_EQ((Extents{4, 2, 32}), block_for({4, 2, 3}, 64, true));
  EXPECT_EQ((Extents{1, 1024, 1}), block_for({1, 1, 1}, 1024, true));
  EXPECT_EQ((Extents{1, 1, 64}), block_for({1, 1, 2}, 64, true)) << "256 layers are too many";
}

TEST(FusedLaunch, IsNotMadeWhereNoDeviceHasTheBlock) {
  EXPECT_EQ((Extents{0, 0, 0}), block_for({1, 1, 2}, 65, true)) << "layers";
  EXPECT_EQ((Extents{0, 0, 0}), block_for({600, 1, 1}, 1024, true)) << "threads";
}

// As many blocks are resident as the parent's own.
TEST(FusedLaunch, AddsNothingToBlocksThatMayWaitForOthers) {
  jit::Variant variant;
  variant.fused_threads = 64;
  variant.more_threads = variant.parent_waits = true;
  variant.queues.emplace_back().child_shared_bytes = 512;
  Launch launch = launch_in({64, 1, 1});
  EXPECT_FALSE(fused_launch(variant, launch, {}).has_value());
  launch.shared_bytes = 512;
  ASSERT_TRUE(fused_launch(variant, launch, {}).has_value());
  EXPECT_EQ((Extents{64, 1, 1}), extents_of(fused_launch(variant, launch, {})->block));
  launch.block[0] = 32;
  EXPECT_FALSE(fused_launch(variant, launch, {}).has_value());
}

TEST(FusedLaunch, AddsRowsOrLayersToGrids) {
  const auto grid_for = [](const Extents& grid, bool may_grow) {
    jit::Variant variant;
    variant.fused_threads = 32;
    variant.more_blocks = may_grow;
    const FusedLimits limits{.multiprocessors = 132, .threads = 1024};
    return extents_of(fused_launch(variant, launch_in({32, 1, 1}, grid), limits)->grid);
  };
  EXPECT_EQ((Extents{5, 1, 1}), grid_for({5, 1, 1}, false));
  EXPECT_EQ((Extents{5, 27, 1}), grid_for({5, 1, 1}, true));
  EXPECT_EQ((Extents{5, 2, 14}), grid_for({5, 2, 2}, true));
  EXPECT_EQ((Extents{200, 1, 1}), grid_for({200, 1, 1}, true));
}

// ---- launches ----

class FusedTest : public FakeDriverTest {
 protected:
  // The first parent alone, with one more variant that runs children in its own kernel.
  void add_fused(const char* name, uint32_t threads, bool may_grow, uint32_t child_shared_bytes = 0,
                 bool where_few = false) {
    jit::Variant pair = variants().front();
    pair.queues[0].double_buffered = true;
    pair.queues[0].child_shared_bytes = child_shared_bytes;
    jit::Variant fused = pair;
    fused.parent_variant = name;
    fused.queues[0].consumer.clear();
    fused.fused_threads = threads;
    fused.more_threads = may_grow;
    fused.where_few = where_few;
    LoadedImage image;
    image.library = library_;
    image.variants = {pair, fused};
    Registry::instance().remove_library(library_);
    Registry::instance().add(image);
    parent_ = kernel("parent");
  }
  Call launch(unsigned threads) {
    forget_calls();
    Launch made = launch_of(parent_);
    made.block[0] = threads;
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(made));
    const std::vector<Call> launches = calls("cuLaunchKernel");
    return launches.empty() ? Call{} : launches.back();
  }
  static uint64_t fused_launches() {
    const nlohmann::json launches = Stats::instance().to_json()["launches"]["fused"];
    return launches.value("parent", uint64_t{0});
  }
};

TEST_F(FusedTest, NothingFollowsTheParent) {
  add_fused("__klap_fused", 64, false);
  const uint64_t before = fused_launches();
  const Call first = launch(64), second = launch(64), third = launch(64);
  EXPECT_EQ((Names{"__klap_fused"}), launched());
  EXPECT_EQ("__klap_fused", first["kernel"]);
  EXPECT_NE(first["params"], second["params"]) << "each launch empties the other head";
  EXPECT_EQ(first["params"], third["params"]);
  EXPECT_EQ(before + 3, fused_launches());
}

// Two kernels and one take turns with the same heads.
TEST_F(FusedTest, BlocksThatAreTooSmallHaveAConsumer) {
  add_fused("__klap_fused", 64, false);
  const Call fused = launch(64);
  launch(32);
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
  launch(32);
  EXPECT_EQ((Names{"__klap_parent", "__klap_consumer"}), launched());
  const Call again = launch(64);
  EXPECT_EQ("__klap_fused", again["kernel"]);
  EXPECT_EQ(fused["params"], again["params"]) << "four launches have been made, one on the empty queue";
}

// The driver's queue has room for as many kernels as the program launches, but not for two of each.
TEST_F(FusedTest, BehindAGateItTakesThePlaceOfThePair) {
  add_fused("__klap_fused", 64, false, 0, true);
  const uint64_t before = fused_launches();
  constexpr uint64_t kLaunches = 880;
  fake<void (*)(int)>("fakeGate")(1);
  for (uint64_t i = 0; i < kLaunches; ++i) launch(64);
  fake<void (*)(int)>("fakeGate")(0);
  EXPECT_LT(kLaunches - InFlight::kMost, fused_launches() - before);
}

TEST_F(FusedTest, BlocksGrow) {
  add_fused("__klap_fused_in_more", 512, true);
  const Call made = launch(64);
  EXPECT_EQ("__klap_fused_in_more", made["kernel"]);
  EXPECT_EQ("64,8,1", made["block"]);
  EXPECT_TRUE(made["params"].ends_with(":01000000010000000100000001000000:")) << made["params"];
}

TEST_F(FusedTest, BlocksThatTheKernelDoesNotTakeHaveAConsumer) {
  add_fused("__klap_fused", 64, false);
  setenv("FAKE_CUDA_THREADS", "__klap_fused=128", 1);
  launch(256);
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
  EXPECT_EQ("__klap_fused", launch(128)["kernel"]);
}

// A program's bound may leave no room for the threads that children need.
TEST_F(FusedTest, AKernelOfSmallBlocksHasAConsumer) {
  add_fused("__klap_fused_in_more", 128, true);
  setenv("FAKE_CUDA_THREADS", "__klap_fused_in_more=64", 1);
  launch(64);
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
}

TEST_F(FusedTest, AKernelThatIsRefusedHasAConsumer) {
  add_fused("__klap_fused", 64, false);
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_fused=701", 1);
  launch(64);
  EXPECT_EQ((Names{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
}

// Children have the dynamic shared memory that they are launched with, whatever the parent has.
TEST_F(FusedTest, HasTheSharedMemoryOfItsChildren) {
  add_fused("__klap_fused", 32, false, 512);
  EXPECT_EQ("512", launch(64)["shared"]);
  Launch more = launch_of(parent_);
  more.shared_bytes = 2048;
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(more));
  EXPECT_EQ("2048", calls("cuLaunchKernel").back()["shared"]);
}

// Looks are made in one context at a time. One that goes on elsewhere leaves its place for the next one.
TEST_F(FusedTest, LooksInTwoContextsInTurnUseTheirPlacesAgain) {
  add_fused("__klap_fused", 64, false, 0, true);
  const CUcontext first = context_;
  new_context();
  std::vector<size_t> made;
  for (int turn = 0; turn < 8; ++turn) {
    fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(turn % 2 == 0 ? first : context_);
    forget_calls();
    for (int i = 0; i < 200; ++i) EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
    EXPECT_FALSE(calls("cuMemcpyDtoHAsync_v2").empty());
    made.push_back(calls("cuEventCreate").size());
  }
  EXPECT_LT(0, made.front());
  EXPECT_EQ(0, made[6] + made[7]);
}

}  // namespace
}  // namespace klap::runtime
