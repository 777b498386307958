// Work queues in memory that comes with its first use: what is asked of the driver, what a queue finds in a
// block that others had, and when queues move to ordinary memory.
#include "runtime/queues/lazy_memory.h"

#include <string>

#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/queues/work_queue_shape.h"
#include "tests/runtime/launch/redirected.h"

namespace klap::runtime {
namespace {

constexpr uint64_t kPool = uint64_t{1} << 30;

uint64_t address_in(const Call& call, const char* key = "address") {
  return std::stoull(call[key], nullptr, 16);
}

class LazyMemoryTest : public RedirectTest {
 protected:
  LazyMemoryTest() { setenv("FAKE_CUDA_MANAGED", "1", 1); }
  ~LazyMemoryTest() override { unsetenv("FAKE_CUDA_MANAGED"); }

  void launch(CUfunction function, CUstream stream = nullptr, unsigned blocks = 4) {
    Launch launch = launch_of(function);
    launch.stream = stream;
    launch.grid[0] = blocks;
    expect_redirected(launch);
  }
  // The head that was written last, as far as the log has it.
  [[nodiscard]] KlapWorkQueue head() const {
    KlapWorkQueue head{};
    const std::string hex = calls("cuMemcpyHtoDAsync_v2").back()["data"];
    auto* const bytes = reinterpret_cast<unsigned char*>(&head);
    for (size_t i = 0; 2 * i + 1 < hex.size(); ++i)
      bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    return head;
  }
  void expect_ordinary_queue() const {
    ASSERT_EQ(1u, calls("cuMemAlloc_v2").size());
    ASSERT_EQ(1u, calls("cuMemsetD8Async").size()) << "its items";
    EXPECT_EQ(calls("cuMemAlloc_v2")[0]["address"], calls("cuMemcpyHtoDAsync_v2").back()["to"]);
  }
  // From now on there are so many bytes beside what is allocated already.
  static void leave(size_t bytes) {
    size_t left = 0, total = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->mem_get_info(&left, &total));
    setenv("FAKE_CUDA_MEMORY", std::to_string(total - left + bytes).c_str(), 1);
  }
  void destroy(CUstream stream) {
    stream_about_to_end(stream);
    EXPECT_EQ(CUDA_SUCCESS, driver()->stream_destroy_v2(stream));
  }
};

TEST_F(LazyMemoryTest, OnlyTheFirstPartsOfAQueueAreFetched) {
  const CUstream stream = new_stream();
  launch(nesting_, stream);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_TRUE(calls("cuMemsetD8Async").empty()) << "it would touch all items";
  ASSERT_EQ(1u, calls("cuMemAllocManaged").size());
  const Call block = calls("cuMemAllocManaged")[0];
  const uint64_t begin = address_in(block), end = begin + std::stoull(block["bytes"]);
  const KlapWorkQueue queue = head();
  const auto items = reinterpret_cast<uint64_t>(queue.items),
             records = reinterpret_cast<uint64_t>(queue.records);
  EXPECT_LE(begin + sizeof queue, items);
  EXPECT_LE(items + uint64_t{queue.item_capacity} * 8, records);
  EXPECT_LE(records + uint64_t{queue.record_capacity} * 24, end);

  const auto advice = calls("cuMemAdvise"), fetched = calls("cuMemPrefetchAsync");
  ASSERT_EQ(2u, advice.size());
  ASSERT_EQ(2u, fetched.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(i == 0 ? begin : records, address_in(fetched[i]));
    EXPECT_EQ(fetched[i]["address"], advice[i]["address"]);
    EXPECT_EQ(fetched[i]["bytes"], advice[i]["bytes"]);
    EXPECT_EQ(std::to_string(CU_MEM_ADVISE_SET_PREFERRED_LOCATION), advice[i]["advice"]);
    EXPECT_EQ(std::stoull(fetched[i]["stream"], nullptr, 16), reinterpret_cast<uint64_t>(stream));
    bytes += std::stoull(fetched[i]["bytes"]);
  }
  EXPECT_LE(bytes, uint64_t{1} << 20);
}

TEST_F(LazyMemoryTest, TheNextLaunchFindsTheQueueReady) {
  launch(nesting_);
  forget_calls();
  launch(nesting_);
  for (const char* name : {"cuMemAllocManaged", "cuMemPrefetchAsync", "cuMemcpyHtoDAsync_v2"})
    EXPECT_TRUE(calls(name).empty()) << name;
}

TEST_F(LazyMemoryTest, AQueueHasRoomForAsMuchAsInOrdinaryMemory) {
  launch(nesting_);
  const KlapWorkQueue lazy = head();
  unsetenv("FAKE_CUDA_MANAGED");
  new_context();
  launch(nesting_);
  const KlapWorkQueue ordinary = head();
  EXPECT_EQ(ordinary.record_capacity, lazy.record_capacity);
  EXPECT_EQ(ordinary.item_capacity, lazy.item_capacity);
}

// Queues of one size and any records have the same blocks, and items in the same part of them.
TEST(LazyShapeTest, ItemsHaveAPartToThemselves) {
  for (const uint64_t pool_bytes : {kPool, kPool / 3, kPool / 16}) {
    const WorkQueueShape first = WorkQueueShape::within(pool_bytes, 16).in_lazy_memory();
    for (uint32_t record_bytes = 16; record_bytes <= 4096; record_bytes += 12) {
      const WorkQueueShape ordinary = WorkQueueShape::within(pool_bytes, record_bytes);
      const WorkQueueShape lazy = ordinary.in_lazy_memory();
      ASSERT_TRUE(lazy.is_lazy());
      EXPECT_EQ(ordinary.records, lazy.records);
      EXPECT_EQ(ordinary.bytes(), lazy.bytes());
      EXPECT_EQ(first.records_offset(), lazy.records_offset());
      EXPECT_EQ(first.lazy_shape().addresses, lazy.lazy_shape().addresses);
      EXPECT_LE(lazy.items_offset() + lazy.items_bytes(), lazy.records_offset());
      EXPECT_LE(lazy.records_offset() + lazy.records * lazy.record_bytes, lazy.lazy_shape().addresses);
      for (const LazyShape::Part& part : lazy.lazy_shape().first)
        EXPECT_LE(part.offset + part.bytes, lazy.lazy_shape().addresses);
    }
  }
  EXPECT_FALSE(WorkQueueShape::within(uint64_t{1} << 20, 24).in_lazy_memory().is_lazy()) << "it is small";
}

// Where the items are, others only had items, which they left zero.
TEST_F(LazyMemoryTest, AnotherStreamHasTheBlockAsItIs) {
  const CUstream first = new_stream(), second = new_stream();
  launch(nesting_, first);
  const std::string block = calls("cuMemAllocManaged")[0]["address"];
  destroy(first);
  forget_calls();
  launch(nesting_, second);
  EXPECT_EQ(block, calls("cuMemcpyHtoDAsync_v2").back()["to"]);
  for (const char* name : {"cuMemAllocManaged", "cuMemPrefetchAsync", "cuMemAdvise", "cuMemsetD8Async"})
    EXPECT_TRUE(calls(name).empty()) << name;
}

// Its items are those of children that were recorded and never taken.
TEST_F(LazyMemoryTest, ABlockOfAConsumerThatFailedIsNotUsedAgain) {
  const CUstream stream = new_stream();
  Launch failing = launch_of(nesting_);
  failing.stream = stream;
  launch(nesting_, stream);
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_consumer=719,cuLaunchKernelEx:__klap_consumer=719", 1);
  EXPECT_NE(CUDA_SUCCESS, redirect_launch(failing).value_or(CUDA_SUCCESS));
  unsetenv("FAKE_CUDA_FAIL");
  destroy(stream);
  launch(nesting_, new_stream());
  EXPECT_EQ(2u, calls("cuMemAllocManaged").size());
}

TEST_F(LazyMemoryTest, OtherQueuesHaveOrdinaryMemory) {
  const CUstream stream = new_stream();
  launch(nesting_, stream);
  destroy(stream);
  forget_calls();
  launch(parent_, new_stream());
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size());
  EXPECT_TRUE(calls("cuMemAllocManaged").empty());
}

// Each group has a part of the queue, so many of them would touch pages everywhere.
TEST_F(LazyMemoryTest, QueuesOfManyGroupsHaveOrdinaryMemory) {
  launch(looping_groups_, nullptr, 2 * 16);
  EXPECT_EQ(1u, calls("cuMemAllocManaged").size());
  launch(looping_groups_, nullptr, 2 * 17);
  EXPECT_EQ(2u, calls("cuMemAlloc_v2").size()) << "the heads and the queue";
  forget_calls();
  launch(looping_groups_, nullptr, 2 * 16);
  launch(nesting_);
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty()) << "the queue stays where it is";
}

TEST_F(LazyMemoryTest, SmallQueuesHaveOrdinaryMemory) {
  CUlibrary library = nullptr;
  load_library({{"nesting", uint64_t{1} << 20}}, library);
  launch(nesting_);
  expect_ordinary_queue();
  Registry::instance().remove_library(library);
  driver()->library_unload(library);
}

TEST_F(LazyMemoryTest, DevicesThatDoNotShareManagedMemoryHaveOrdinaryMemory) {
  setenv("FAKE_CUDA_MANAGED", "alone", 1);
  launch(nesting_);
  expect_ordinary_queue();
  EXPECT_TRUE(calls("cuMemAllocManaged").empty());
}

TEST_F(LazyMemoryTest, IfADriverCallFailsAllQueuesHaveOrdinaryMemory) {
  for (const std::string call : {"cuMemAllocManaged=2", "cuMemAdvise=801", "cuMemPrefetchAsync=1",
                                 "cuMemAdvise=801@2", "cuMemPrefetchAsync=1@2"}) {
    new_context();
    forget_calls();
    setenv("FAKE_CUDA_FAIL", call.c_str(), 1);
    launch(nesting_);
    unsetenv("FAKE_CUDA_FAIL");
    expect_ordinary_queue();
    EXPECT_TRUE(calls("cuMemFree_v2").empty()) << "it may wait for the device";
    forget_calls();
    launch(nesting_, new_stream());
    expect_ordinary_queue();
    EXPECT_TRUE(calls("cuMemAllocManaged").empty()) << call;
  }
}

TEST_F(LazyMemoryTest, QueuesThatHaveSuchMemoryKeepItIfALaterCallFails) {
  const CUstream first = new_stream();
  launch(nesting_, first);
  setenv("FAKE_CUDA_FAIL", "cuMemAllocManaged=2", 1);
  launch(nesting_, new_stream());
  unsetenv("FAKE_CUDA_FAIL");
  expect_ordinary_queue();
  forget_calls();
  launch(nesting_, first);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_TRUE(calls("cuMemcpyHtoDAsync_v2").empty());
}

TEST_F(LazyMemoryTest, MemoryIsGivenBack) {
  launch(nesting_);
  const std::string block = calls("cuMemAllocManaged")[0]["address"];
  ASSERT_TRUE(give_back_queue_memory());
  EXPECT_EQ(block, calls("cuMemFree_v2").back()["address"]);
  launch(nesting_);
  EXPECT_EQ(2u, calls("cuMemAllocManaged").size());
}

LazyShape shape_of(uint64_t most_used) {
  return {2 * most_used, most_used, {{{0, 4096}, {most_used, 4096}}}};
}

// A stream may use all of its block, at any time.
TEST_F(LazyMemoryTest, CountsInFullWhileAStreamHasIt) {
  leave(8000000);
  BlockPool pool(~uint64_t{0});
  MaybeReason why = nullptr;
  const Block block = pool.take_lazy(shape_of(600000), nullptr, why);
  ASSERT_NE(0u, block.address);
  EXPECT_EQ(600000u, block.bytes);
  EXPECT_EQ(0u, pool.take_lazy(shape_of(400001), nullptr, why).address);
  EXPECT_EQ(&reasons::kQueuesOverShare, why);
  EXPECT_EQ(&reasons::kQueuesOverShare, pool.reserve(400001));
  pool.retire({block}, CUstream{});
  EXPECT_EQ(nullptr, pool.reserve(800000));
  EXPECT_FALSE(LazyMemory::is_used());
  pool.unreserve(800000);
  EXPECT_EQ(block.address, pool.take_lazy(shape_of(600000), nullptr, why).address);
  EXPECT_EQ(nullptr, why);
}

TEST_F(LazyMemoryTest, BlocksGoToQueuesOfTheirOwnShape) {
  BlockPool pool(~uint64_t{0});
  MaybeReason why = nullptr;
  const Block large = pool.take_lazy(shape_of(600000), nullptr, why);
  pool.retire({large}, CUstream{});
  EXPECT_NE(large.address, pool.take_lazy(shape_of(500000), nullptr, why).address);
  EXPECT_EQ(large.address, pool.take_lazy(shape_of(600000), nullptr, why).address);
}

TEST_F(LazyMemoryTest, NeedsFreeMemoryForAllThatStreamsHave) {
  LazyMemory memory;
  ASSERT_TRUE(memory.is_on());
  leave(1000);
  EXPECT_FALSE(LazyMemory::is_used());
  EXPECT_TRUE(memory.add(600));
  EXPECT_TRUE(LazyMemory::is_used());
  EXPECT_FALSE(memory.add(401));
  EXPECT_FALSE(memory.is_on()) << "it is off from then on";
  memory.remove(600);
  EXPECT_FALSE(LazyMemory::is_used());
}

TEST_F(LazyMemoryTest, IsShortWhenTheProgramWouldLeaveTooLittle) {
  LazyMemory memory;
  leave(1000);
  EXPECT_FALSE(memory.is_short_without(1000)) << "nobody needs any";
  ASSERT_TRUE(memory.add(600));
  EXPECT_FALSE(memory.is_short_without(100));
  EXPECT_FALSE(memory.is_short_without(300));
  EXPECT_TRUE(memory.is_short_without(401));
  EXPECT_FALSE(memory.is_short_without(10000)) << "the program will not get it";
  EXPECT_FALSE(memory.is_short_without(~uint64_t{0}));
  leave(500);
  EXPECT_TRUE(memory.is_short_without(401)) << "others have taken some";
}

TEST_F(LazyMemoryTest, QueuesMoveBeforeTheProgramTakesTheMemory) {
  const CUstream first = new_stream(), second = new_stream();
  launch(nesting_, first);
  launch(nesting_, second);
  leave(kPool);  // of which new queues could have an eighth
  before_allocation(kPool / 4);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  before_allocation(kPool * 3 / 4);
  EXPECT_EQ(2u, calls("cuMemAlloc_v2").size()) << "before the program has taken it";
  forget_calls();
  launch(nesting_, first);
  launch(nesting_, second);
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
  EXPECT_EQ(2u, calls("cuMemsetD8Async").size());
  EXPECT_EQ((Names{"__klap_nesting", "__klap_consumer", "__klap_nesting", "__klap_consumer"}), launched());
}

TEST_F(LazyMemoryTest, QueuesMoveOnlyWhenNoKernelUsesThem) {
  launch(nesting_);
  leave(kPool);
  forget_calls();
  setenv("FAKE_CUDA_FAIL", "cuEventQuery=600@1", 1);  // CUDA_ERROR_NOT_READY
  before_allocation(kPool * 7 / 8);
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_EQ(1u, calls("cuEventRecord").size());
  EXPECT_EQ(1u, calls("cuEventDestroy_v2").size());
}

TEST_F(LazyMemoryTest, WithoutSuchQueuesTheDriverIsAskedNothing) {
  launch(parent_);
  forget_calls();
  before_allocation(kPool);
  EXPECT_TRUE(calls().empty());
}

}  // namespace
}  // namespace klap::runtime
