// Queues that each launch allocates for itself (buffer malloc): what is taken when, given back when, and
// where there is none.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "fake_driver.h"
#include "runtime/stats.h"

namespace klap::runtime {
namespace {

using Names = std::vector<std::string>;

class BufferTest : public FakeDriverTest {
 protected:
  BufferTest() {
    static const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    EXPECT_EQ(CUDA_SUCCESS, driver()->library_load_data(&allocating_, cubin.data(), nullptr, nullptr, 0,
                                                        nullptr, nullptr, 0));
    LoadedImage image;
    image.library = allocating_;
    image.variants = variants();
    for (jit::Variant& variant : image.variants) variant.buffer = jit::Buffer::Malloc;
    Registry::instance().add(image);
  }
  ~BufferTest() override {
    Registry::instance().remove_library(allocating_);
    driver()->library_unload(allocating_);
  }

  Launch launch_of_kernel(const char* name, CUstream stream = nullptr) {
    Launch launch = launch_of(kernel(allocating_, name));
    launch.stream = stream;
    return launch;
  }
  // What was enqueued and taken, in order: Parent, Consumer, Allocation, Free; "-" for what failed.
  [[nodiscard]] std::string order() const {
    std::string text;
    for (const Call& call : calls()) {
      const bool failed = !call["result"].empty() && call["result"] != "0";
      if (call.name() == "cuMemAllocFromPoolAsync") text += failed ? "-" : "A";
      if (call.name() == "cuMemFreeAsync") text += "F";
      if (call.name() == "cuMemAlloc_v2") text += "P";
      if (call.name().starts_with("cuLaunchKernel")) text += call["kernel"].ends_with("consumer") ? "C" : "V";
    }
    return text;
  }
  [[nodiscard]] bool all_is_given_back() const {
    Names taken, given;
    for (const Call& call : calls("cuMemAllocFromPoolAsync")) taken.push_back(call["address"]);
    for (const Call& call : calls("cuMemFreeAsync")) given.push_back(call["address"]);
    std::ranges::sort(taken);
    std::ranges::sort(given);
    return taken == given;
  }
  CUlibrary allocating_ = nullptr;
};

TEST_F(BufferTest, IsAllocatedBeforeTheParentAndFreedBehindTheConsumer) {
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ("ACVCF", order()) << "the first consumer runs on the empty queue";
  forget_calls();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ("AVCF", order());
  EXPECT_TRUE(all_is_given_back());
  EXPECT_EQ(1u, calls("cuMemcpyHtoDAsync_v2").size()) << "the head is new each time";
  const std::string queue = calls("cuLaunchKernel").back()["params"];
  EXPECT_EQ(calls("cuMemcpyHtoDAsync_v2")[0]["to"], calls("cuMemAllocFromPoolAsync")[0]["address"]);
  EXPECT_TRUE(calls("cuLaunchKernel")[0]["params"].ends_with(queue));
}

TEST_F(BufferTest, IsWhatTheLaunchNeedsAndInItsStream) {
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, 0));
  for (const CUstream in : {stream, static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD}) {
    forget_calls();
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent", in)));
    const auto taken = calls("cuMemAllocFromPoolAsync"), given = calls("cuMemFreeAsync");
    ASSERT_EQ(1u, taken.size());
    ASSERT_EQ(1u, given.size());
    EXPECT_EQ(calls("cuLaunchKernel").back()["stream"], taken[0]["stream"]);
    EXPECT_EQ(taken[0]["stream"], given[0]["stream"]);
    EXPECT_LT(std::stoull(taken[0]["bytes"]), 256u * (24 + 8) + 8192) << "room for 256 records and the head";
  }
}

TEST_F(BufferTest, EveryWayToLaunchGivesItBack) {
  for (const auto& [name, expected] : {std::pair{"launching", "AVF"},
                                       {"several", "AACCVCCFF"},
                                       {"grouped", "AVF"},
                                       {"nesting", "ACVCF"},
                                       {"looping_groups", "AAVFF"},
                                       {"sliced_groups", "AAVFF"}}) {
    SCOPED_TRACE(name);
    forget_calls();
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel(name)));
    EXPECT_EQ(expected, order());
    EXPECT_TRUE(all_is_given_back());
  }
  forget_calls();
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_launching=701@1", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of_kernel("launching"))) << "the original is to run";
  EXPECT_TRUE(all_is_given_back());
}

TEST_F(BufferTest, CountersAreZeroedInTheStream) {
  forget_calls();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("grouped")));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("grouped")));
  EXPECT_EQ(2u, calls("cuMemsetD8Async").size()) << "those of the groups, once for each launch";
}

TEST_F(BufferTest, WithoutMemoryTheOriginalRuns) {
  const int before = left("no device memory");
  setenv("FAKE_CUDA_FAIL", "cuMemAllocFromPoolAsync=2", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ(before + 1, left("no device memory"));
  EXPECT_EQ(Names{}, launched());
  // Of two queues the first was there.
  setenv("FAKE_CUDA_FAIL", "cuMemAllocFromPoolAsync=2@2", 1);
  forget_calls();
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of_kernel("several")));
  EXPECT_EQ("AF", order());
  EXPECT_TRUE(all_is_given_back());
}

TEST_F(BufferTest, SlicesAreHalvedWhereTheDeviceHasNoMemory) {
  setenv("FAKE_CUDA_FAIL", "cuMemAllocFromPoolAsync=2@1,", 1);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("sliced")));
  EXPECT_EQ("ACVCVCF", order()) << "one queue serves all slices";
}

TEST_F(BufferTest, IsThePoolWhereTheDriverHasNoMemoryPools) {
  setenv("FAKE_CUDA_FAIL", "cuMemPoolCreate=801", 1);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ("PCVCVC", order());
}

TEST_F(BufferTest, PoolIsOneForAContextAndNeverWaitsForOtherStreams) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("parent")));
  EXPECT_EQ(1u, calls("cuMemPoolCreate").size());
  ASSERT_EQ(1u, calls("cuMemPoolSetAttribute").size());
  EXPECT_EQ(std::to_string(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES),
            calls("cuMemPoolSetAttribute")[0]["attribute"]);
  EXPECT_EQ("0", calls("cuMemPoolSetAttribute")[0]["value"]);
}

// Others keep theirs.
TEST_F(BufferTest, IsTheParentsOwnChoice) {
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of_kernel("other")));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_EQ("PCVCACVCFVC", order());
}

// total_bytes: what the largest launch of a stream took counts until the stream ends, together with the pool.
TEST_F(BufferTest, CountsAsTheStreamsUntilItEnds) {
  BlockPool limit(1000);
  LaunchPool source;
  LaunchMemory first(source, limit, nullptr), second(source, limit, nullptr);
  MaybeReason why = nullptr;
  for (int launch = 0; launch < 3; ++launch) {
    const Block block = first.take(600, why);
    EXPECT_NE(0u, block.address);
    EXPECT_EQ(0u, second.take(500, why).address);
    EXPECT_EQ(&reasons::kQueuesOverTotalBytes, why);
    first.give_back(block);
  }
  EXPECT_EQ(0u, limit.take(500, why).address);
  EXPECT_EQ(&reasons::kQueuesOverTotalBytes, why);
  setenv("FAKE_CUDA_FAIL", "cuMemAllocFromPoolAsync=2", 1);
  EXPECT_EQ(0u, second.take(400, why).address);
  EXPECT_EQ(&reasons::kNoDeviceMemory, why);
  unsetenv("FAKE_CUDA_FAIL");
  const Block pooled = limit.take(400, why);
  EXPECT_NE(0u, pooled.address) << "what was not there does not count";
  limit.retire({{0, first.take_reserved()}}, static_cast<CUstream>(nullptr));
  EXPECT_NE(0u, second.take(600, why).address);
  EXPECT_EQ(0u, second.take(1, why).address);
}

}  // namespace
}  // namespace klap::runtime
