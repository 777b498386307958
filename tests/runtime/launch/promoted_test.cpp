// Promoted chains: which launches become one, in how many blocks, and the rings.
#include <nlohmann/json.hpp>
#include <thread>

#include "fake_driver.h"
#include "runtime/queues/chain_shape.h"
#include "runtime/stats.h"

namespace klap::runtime {
namespace {

using Chains = std::map<std::string, LoadedImage::ChainBlocks>;

class PromotedTest : public FakeDriverTest {
 protected:
  PromotedTest() { load_chains({}); }
  ~PromotedTest() override { unload_chains(); }

  static std::vector<jit::Variant> chain_variants() {
    jit::Variant overlapping;
    overlapping.parent = "chained";
    overlapping.parent_variant = "__klap_chained";
    overlapping.parent_param_count = 2;
    overlapping.parent_param_bytes = 12;
    overlapping.queue_param_offset = 16;
    overlapping.promoted =
        jit::PromotedChain{.mode = "PAO", .block = {128, 1, 1}, .slot_bytes = 16, .double_buffered = true};
    jit::Variant passing = overlapping;
    passing.parent = "passing";
    passing.parent_variant = "__klap_passing";
    passing.promoted->mode = "PA";
    passing.promoted->shared_bytes = 64;
    passing.promoted->double_buffered = false;
    jit::Variant spawning = overlapping;
    spawning.parent = "spawning";
    spawning.parent_variant = "__klap_spawning";
    spawning.promoted->mode = "PO";
    return {overlapping, passing, spawning};
  }

  // With those settings; the chains are loaded anew.
  void load_chains(const Chains& chains, const std::map<std::string, uint64_t>& pool_bytes = {}) {
    unload_chains();
    static const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    ASSERT_EQ(CUDA_SUCCESS,
              driver()->library_load_data(&chains_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    LoadedImage image;
    image.library = chains_;
    image.variants = chain_variants();
    image.chains = chains;
    image.pool_bytes = pool_bytes;
    Registry::instance().add(image);
    chained_ = kernel(chains_, "chained");
    passing_ = kernel(chains_, "passing");
  }
  void unload_chains() {
    if (!chains_) return;
    Registry::instance().remove_library(chains_);
    driver()->library_unload(chains_);
    chains_ = nullptr;
  }

  // The launch that the chains are made for.
  Launch first_link(CUfunction function, CUstream stream = nullptr) {
    Launch launch = launch_of(function);
    launch.grid[0] = 1;
    launch.block[0] = 128;
    launch.shared_bytes = function == passing_ ? 64 : 0;
    launch.stream = stream;
    return launch;
  }
  // Launches, expecting the chain, and returns the call.
  Call run(const Launch& launch) {
    forget_calls();
    const auto result = redirect_launch(launch);
    EXPECT_TRUE(result.has_value());
    EXPECT_EQ(CUDA_SUCCESS, result.value_or(CUDA_ERROR_UNKNOWN));
    const auto launches = calls(launch.attributes.empty() ? "cuLaunchKernel" : "cuLaunchKernelEx");
    EXPECT_EQ(1u, launches.size()) << "nothing but the chain";
    return launches.empty() ? Call{} : launches[0];
  }
  // The chain's address in a call.
  static std::string chain(const Call& call) {
    const std::string params = call["params"];  // "...:...:ADDRESS:"
    const size_t end = params.rfind(':');
    return params.substr(params.rfind(':', end - 1) + 1);
  }
  // The parameter behind it.
  static std::string places(const Call& call) { return chain(call); }
  void expect_left(const Launch& launch, const std::string& reason, const std::string& name = "chained") {
    FakeDriverTest::expect_left(launch, reason, name);
  }
  static CUstream new_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, 0));
    return stream;
  }

  CUlibrary chains_ = nullptr;
  CUfunction chained_ = nullptr, passing_ = nullptr;
};

TEST_F(PromotedTest, OneBlockBecomesAsManyAsFillTheDevice) {
  const Call call = run(first_link(chained_));
  EXPECT_EQ("__klap_chained", call["kernel"]);
  EXPECT_EQ("2112,1,1", call["grid"]);  // 132 multiprocessors, 16 blocks of 128 threads on each
  EXPECT_EQ("128,1,1", call["block"]);
  EXPECT_EQ("8877665544332211:ccbbaa99:" + chain(call), call["params"]);
}

TEST_F(PromotedTest, WithoutOverlapAFewBlocksAreEnough) {
  EXPECT_EQ("8,1,1", run(first_link(passing_))["grid"]);
}

TEST_F(PromotedTest, SettingsSayHowManyBlocks) {
  load_chains({{"chained", {.pool = 0, .concurrency = 32}}, {"passing", {.pool = 0, .concurrency = 32}}});
  EXPECT_EQ("66,1,1", run(first_link(chained_))["grid"]);
  EXPECT_EQ("1,1,1", run(first_link(passing_))["grid"]) << "at least one";
  load_chains({{"chained", {.pool = 3, .concurrency = 32}}, {"passing", {.pool = 5000}}});
  EXPECT_EQ("3,1,1", run(first_link(chained_))["grid"]);
  EXPECT_EQ("5000,1,1", run(first_link(passing_))["grid"]);
}

// Their blocks launch each other: up to so many.
TEST_F(PromotedTest, LaunchedLinksBeginWithOneBlock) {
  const CUfunction spawning = kernel(chains_, "spawning");
  Call call = run(first_link(spawning));
  EXPECT_EQ("__klap_spawning", call["kernel"]);
  EXPECT_EQ("1,1,1", call["grid"]);
  EXPECT_TRUE(places(call).starts_with("4000000000000000")) << call["params"];
  load_chains({{"spawning", {.pool = 0, .concurrency = 32}}});
  call = run(first_link(kernel(chains_, "spawning")));
  EXPECT_EQ("1,1,1", call["grid"]);
  EXPECT_TRUE(places(call).starts_with("0200000000000000")) << call["params"];
  load_chains({{"spawning", {.pool = 300}}});
  call = run(first_link(kernel(chains_, "spawning")));
  EXPECT_EQ("1,1,1", call["grid"]);
  EXPECT_TRUE(places(call).starts_with("2c01000000000000")) << call["params"];
}

TEST_F(PromotedTest, OtherLaunchesOfTheKernelAreLeft) {
  for (int axis = 0; axis < 3; ++axis) {
    Launch launch = first_link(chained_);
    launch.grid[axis] = 2;
    expect_left(launch, "not the chain's form");
    launch = first_link(chained_);
    launch.block[axis] = 64;
    expect_left(launch, "not the chain's form");
  }
  Launch launch = first_link(chained_);
  launch.shared_bytes = 64;
  expect_left(launch, "not the chain's form");
  launch = first_link(passing_);
  launch.shared_bytes = 0;
  expect_left(launch, "not the chain's form", "passing");
  launch.grid[0] = 0;
  expect_left(launch, "empty grid", "passing");
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
}

TEST_F(PromotedTest, RingIsZeroBehindItsHead) {
  const Call call = run(first_link(chained_));
  const ChainShape shape{16};
  const auto allocations = calls("cuMemAlloc_v2"), clears = calls("cuMemsetD8Async"),
             copies = calls("cuMemcpyHtoDAsync_v2");
  ASSERT_EQ(1u, allocations.size());
  ASSERT_EQ(1u, clears.size());
  ASSERT_EQ(1u, copies.size());
  EXPECT_EQ(std::to_string(shape.bytes()), allocations[0]["bytes"]);
  EXPECT_EQ(allocations[0]["address"], copies[0]["to"]);
  const uint64_t address = std::stoull(allocations[0]["address"], nullptr, 16);
  const std::string bytes = copies[0]["data"];
  ASSERT_GE(bytes.size(), 2 * (offsetof(KlapChain, left) + sizeof(uint64_t))) << "the log says enough";
  const auto word = [&](size_t offset) {  // little-endian
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
      value = value << 8 | std::stoul(bytes.substr(2 * (offset + i), 2), nullptr, 16);
    return value;
  };
  EXPECT_EQ(address + shape.ring_offset(false), word(offsetof(KlapChain, ring)));
  for (size_t offset = sizeof(uint64_t); 2 * offset < bytes.size(); offset += sizeof(uint64_t)) {
    const uint64_t distance = offset == offsetof(KlapChain, other) ? ChainShape::head_offset(true) : 0;
    EXPECT_EQ(distance, word(offset)) << offset;
  }
}

TEST_F(PromotedTest, RingsLastAndEveryKernelHasItsOwn) {
  const std::string first = chain(run(first_link(chained_)));
  EXPECT_NE(first, chain(run(first_link(chained_)))) << "which the first one has made ready";
  EXPECT_EQ(1u, calls().size()) << "nothing but the launch";
  const std::string other = chain(run(first_link(passing_)));
  EXPECT_NE(first, other);
  EXPECT_EQ(first, chain(run(first_link(chained_))));
  EXPECT_EQ(other, chain(run(first_link(passing_)))) << "one that makes itself ready";
  EXPECT_TRUE(calls("cuMemsetD8Async").empty());
}

TEST_F(PromotedTest, HeadsKnowWhereTheOtherOneIs) {
  const auto address = [&](const Call& call) {  // the log has its bytes
    return __builtin_bswap64(std::stoull(chain(call), nullptr, 16));
  };
  const uint64_t first = address(run(first_link(chained_)));
  const uint64_t second = address(run(first_link(chained_)));
  const ChainShape::Heads heads = ChainShape{16}.heads(first, 0);
  EXPECT_EQ(second, first + ChainShape::head_offset(true));
  EXPECT_EQ(second, first + heads.first.other);
  EXPECT_EQ(first, second + heads.second.other);
  EXPECT_EQ(heads.first.ring + KLAP_CHAIN_SLOTS * 2, heads.second.ring);
}

TEST_F(PromotedTest, LaunchThatFailsTakesNoTurn) {
  const std::string first = chain(run(first_link(chained_)));
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_chained=701", 1);
  expect_left(first_link(chained_), "variant does not launch");
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_NE(first, chain(run(first_link(chained_))));
  EXPECT_EQ(first, chain(run(first_link(chained_))));
}

TEST_F(PromotedTest, EveryStreamHasRingsOfItsOwnAndGivesThemBack) {
  const CUstream stream = new_stream();
  const std::string of_null = chain(run(first_link(chained_)));
  const std::string of_stream = chain(run(first_link(chained_, stream)));
  EXPECT_NE(of_null, of_stream);
  stream_about_to_end(stream);
  EXPECT_EQ(CUDA_SUCCESS, driver()->stream_destroy_v2(stream));
  EXPECT_EQ(of_stream, chain(run(first_link(passing_, new_stream())))) << "the memory is free again";
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_EQ(1u, calls("cuMemsetD8Async").size()) << "and cleared for its new owner";
}

TEST_F(PromotedTest, EndedThreadsGiveTheirRingsBack) {
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context_);
      run(first_link(chained_, CU_STREAM_PER_THREAD));
      EXPECT_EQ(1u, calls("cuEventRecord").size());
      EXPECT_EQ(i == 0 ? 1u : 0u, calls("cuMemAlloc_v2").size());
    }).join();
  }
}

TEST_F(PromotedTest, CapturedStreamsAreLeft) {
  const CUstream stream = new_stream();
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect_left(first_link(chained_, stream), "stream capture");
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture")(stream, &graph));
  expect_left(first_link(chained_, stream), "parents in graphs");
}

TEST_F(PromotedTest, AttributesAreAsForOtherVariants) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = -3;
  Launch launch = first_link(chained_);
  launch.attributes = {&attribute, 1};
  EXPECT_EQ("8=-3;", run(launch)["attributes"]);
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  expect_left(launch, "cooperative launch");
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  expect_left(launch, "launch attribute");
}

// All blocks of a chain must find room, however the program would like the memory to be shared out.
TEST_F(PromotedTest, BlocksFindRoomWhateverTheProgramPrefers) {
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  attributes[0].value.sharedMemCarveout = 0;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -3;
  Launch launch = first_link(chained_);
  launch.attributes = attributes;
  EXPECT_EQ("8=-3;", run(launch)["attributes"]);
}

TEST_F(PromotedTest, MemoryIsLimited) {
  const ChainShape shape{16};
  load_chains({}, {{"chained", shape.bytes() - 1}, {"passing", shape.bytes()}});
  expect_left(first_link(chained_), "queue over pool_bytes");
  run(first_link(passing_));
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
  load_chains({});
  expect_left(first_link(chained_), "no device memory");
}

TEST_F(PromotedTest, ARingThatCannotBeWrittenIsNotUsed) {
  for (const char* const failing : {"cuMemsetD8Async=1", "cuMemcpyHtoDAsync_v2=1"}) {
    setenv("FAKE_CUDA_FAIL", failing, 1);
    expect_left(first_link(chained_), "queue not writable");
    unsetenv("FAKE_CUDA_FAIL");
  }
  run(first_link(chained_));
  EXPECT_EQ(1u, calls("cuMemsetD8Async").size()) << "made anew";
}

TEST_F(PromotedTest, VariantsThatDoNotRunAreNotUsed) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_chained=701", 1);
  expect_left(first_link(chained_), "variant does not launch");
  unsetenv("FAKE_CUDA_FAIL");
  setenv("FAKE_CUDA_THREADS", "__klap_passing=64", 1);
  expect_left(first_link(passing_), "block over the variant's limit", "passing");
}

TEST_F(PromotedTest, PackedParametersAreExtended) {
  unsigned char buffer[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  Launch launch = first_link(chained_);
  launch.params = nullptr;
  launch.extra = extra;
  const Call call = run(launch);
  EXPECT_EQ("0102030405060708:090a0b0c:" + chain(call), call["params"]);
  bytes = 11;
  expect_left(launch, "parameters missing");
}

}  // namespace
}  // namespace klap::runtime
