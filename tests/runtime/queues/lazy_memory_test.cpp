// Work queues in memory that comes with its first use: what is asked of the driver, what a queue finds in a
// block that others had, where records are, and when queues move to ordinary memory.
#include "runtime/queues/lazy_memory.h"

#include <malloc.h>

#include <string>

#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/queues/work_queue_shape.h"
#include "tests/runtime/launch/redirected.h"

namespace klap::runtime {
namespace {

constexpr uint64_t kPool = uint64_t{1} << 30;
constexpr uint64_t kRecordBytes = 24;  // at least, of a parent here

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
  // Where the parts of the records begin.
  static uint64_t front_of(const KlapWorkQueue& queue) {
    return reinterpret_cast<uint64_t>(queue.records) + uint64_t{queue.places.front} * KLAP_WORK_UNIT;
  }
  static uint64_t rest_of(const KlapWorkQueue& queue) {
    return reinterpret_cast<uint64_t>(queue.records) + uint64_t{queue.places.rest} * KLAP_WORK_UNIT;
  }
  void expect_ordinary_queue() const {
    const KlapRecordPlaces places = head().places;
    EXPECT_EQ(0u, places.front_records + places.front + places.rest);
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

TEST_F(LazyMemoryTest, OnlyTheFirstPartOfTheItemsIsFetched) {
  const CUstream stream = new_stream();
  launch(nesting_, stream);
  EXPECT_TRUE(calls("cuMemsetD8Async").empty()) << "it would touch all items";
  ASSERT_EQ(1u, calls("cuMemAllocManaged").size());
  const auto advice = calls("cuMemAdvise"), fetched = calls("cuMemPrefetchAsync");
  ASSERT_EQ(1u, advice.size());
  ASSERT_EQ(1u, fetched.size());
  EXPECT_EQ(reinterpret_cast<uint64_t>(head().items), address_in(fetched[0]));
  EXPECT_EQ(address_in(calls("cuMemAllocManaged")[0]), address_in(fetched[0]));
  EXPECT_EQ(fetched[0]["address"], advice[0]["address"]);
  EXPECT_EQ(fetched[0]["bytes"], advice[0]["bytes"]);
  EXPECT_EQ(std::to_string(CU_MEM_ADVISE_SET_PREFERRED_LOCATION), advice[0]["advice"]);
  EXPECT_EQ(std::stoull(fetched[0]["stream"], nullptr, 16), reinterpret_cast<uint64_t>(stream));
  EXPECT_LE(std::stoull(fetched[0]["bytes"]), uint64_t{1} << 20);
}

// What atomics go to: the head and the records that small launches use.
TEST_F(LazyMemoryTest, TheFrontIsInOrdinaryMemory) {
  launch(nesting_);
  ASSERT_EQ(1u, calls("cuMemAlloc_v2").size());
  const Call ordinary = calls("cuMemAlloc_v2")[0], lazy = calls("cuMemAllocManaged")[0];
  EXPECT_LE(std::stoull(ordinary["bytes"]), uint64_t{1} << 20);
  EXPECT_EQ(ordinary["address"], calls("cuMemcpyHtoDAsync_v2").back()["to"]) << "the head";
  const KlapWorkQueue queue = head();
  const uint64_t front = front_of(queue), rest = rest_of(queue);
  const uint64_t begin = address_in(ordinary), lazy_begin = address_in(lazy);
  EXPECT_LT(1000u, queue.places.front_records);
  EXPECT_LE(begin + sizeof queue, front);
  EXPECT_LE(front + uint64_t{queue.places.front_records} * kRecordBytes,
            begin + std::stoull(ordinary["bytes"]));
  EXPECT_LE(reinterpret_cast<uint64_t>(queue.items) + uint64_t{queue.item_capacity} * 8, rest);
  EXPECT_LE(rest + uint64_t{queue.record_capacity} * kRecordBytes, lazy_begin + std::stoull(lazy["bytes"]));
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
      EXPECT_EQ(first.records_at, lazy.records_at);
      EXPECT_EQ(first.lazy_shape().addresses, lazy.lazy_shape().addresses);
      EXPECT_EQ(ordinary.bytes(), lazy.lazy_shape().most_used + lazy.ordinary_bytes());
      EXPECT_LE(lazy.items_bytes(), lazy.records_at);
      EXPECT_LE(lazy.records_at + lazy.records * lazy.record_bytes, lazy.lazy_shape().addresses);
      EXPECT_LE(lazy.lazy_shape().first, lazy.records_at);
    }
  }
  EXPECT_FALSE(WorkQueueShape::within(uint64_t{1} << 20, 24).in_lazy_memory().is_lazy()) << "it is small";
}

// A record's distance from `records`, as the recording thread computes it (record_places.h).
uint64_t distance_of(const KlapWorkQueue& queue, uint64_t number, uint64_t record_bytes) {
  const KlapRecordPlaces& places = queue.places;
  return number * record_bytes +
         uint64_t{number < places.front_records ? places.front : places.rest} * KLAP_WORK_UNIT;
}

// Wherever both parts are, each record is in one of them, and an item can name it.
TEST(LazyShapeTest, AnItemNamesTheRecordsOfBothParts) {
  constexpr uint64_t kRecord = 96, kHere = uint64_t{1} << 44;
  const WorkQueueShape shape = WorkQueueShape::within(kPool, kRecord).in_lazy_memory();
  const uint64_t lazy_bytes = shape.lazy_shape().addresses, front_bytes = shape.ordinary_bytes();
  const uint64_t most = KLAP_WORK_NAMED_BYTES - shape.records * kRecord;
  const uint64_t beside = kHere + shape.records_at - WorkQueueShape::head_bytes();  // no distance of records
  for (const uint64_t other : {kHere + lazy_bytes, kHere - front_bytes, beside + most, beside - most}) {
    const KlapWorkQueue queue = shape.header(other, kHere, 0, 0);
    const auto begin = reinterpret_cast<uint64_t>(queue.records);
    const uint64_t count = queue.places.front_records;
    ASSERT_LT(1000u, count);
    EXPECT_EQ(other + WorkQueueShape::head_bytes(), begin + distance_of(queue, 0, kRecord));
    EXPECT_LE(begin + distance_of(queue, count - 1, kRecord) + kRecord, other + front_bytes);
    EXPECT_EQ(kHere + shape.records_at + count * kRecord, begin + distance_of(queue, count, kRecord));
    const uint64_t last = distance_of(queue, shape.records - 1, kRecord);
    EXPECT_LE(begin + last + kRecord, kHere + lazy_bytes);
    EXPECT_LT(last / KLAP_WORK_UNIT + 1, 0xffffffffu);
    EXPECT_LT(distance_of(queue, count - 1, kRecord) / KLAP_WORK_UNIT + 1, 0xffffffffu);
  }
}

// The C library has smaller blocks in its heap, far from the others.
TEST_F(LazyMemoryTest, IfTheFrontIsTooFarAwayTheFirstRecordsAreFetched) {
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  launch(nesting_);
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const KlapWorkQueue queue = head();
  if (queue.places.front_records != 0) GTEST_SKIP() << "this C library has them near";
  const auto fetched = calls("cuMemPrefetchAsync");
  ASSERT_EQ(2u, fetched.size());
  EXPECT_EQ(reinterpret_cast<uint64_t>(queue.items), address_in(fetched[0]));
  EXPECT_EQ(reinterpret_cast<uint64_t>(queue.records), address_in(fetched[1]));
  EXPECT_LE(std::stoull(fetched[0]["bytes"]) + std::stoull(fetched[1]["bytes"]), uint64_t{1} << 20);
  forget_calls();
  launch(nesting_);
  EXPECT_TRUE(calls("cuMemPrefetchAsync").empty());
}

// Then all of them are in lazy memory. Kernels with smaller records than the queue has find them there, too.
TEST(LazyShapeTest, AFrontThatIsTooFarAwayHasNoRecords) {
  constexpr uint64_t kHere = uint64_t{1} << 44;
  const WorkQueueShape shape = WorkQueueShape::within(kPool, 96).in_lazy_memory();
  for (const uint64_t other : {kHere + KLAP_WORK_NAMED_BYTES, kHere - KLAP_WORK_NAMED_BYTES}) {
    const KlapWorkQueue queue = shape.header(other, kHere, 0, 0);
    EXPECT_EQ(0u, queue.places.front_records + queue.places.front + queue.places.rest);
    EXPECT_EQ(kHere + shape.records_at, reinterpret_cast<uint64_t>(queue.records));
  }
}

// Where the items are, others only had items, which they left zero.
TEST_F(LazyMemoryTest, AnotherStreamHasTheBlockAsItIs) {
  const CUstream first = new_stream(), second = new_stream();
  launch(nesting_, first);
  const std::string block = calls("cuMemAllocManaged")[0]["address"];
  destroy(first);
  forget_calls();
  launch(nesting_, second);
  EXPECT_EQ(std::stoull(block, nullptr, 16), reinterpret_cast<uint64_t>(head().items));
  for (const char* name :
       {"cuMemAlloc_v2", "cuMemAllocManaged", "cuMemPrefetchAsync", "cuMemAdvise", "cuMemsetD8Async"})
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
  const std::string front = calls("cuMemAlloc_v2")[0]["address"];
  destroy(stream);
  forget_calls();
  launch(parent_, new_stream());
  EXPECT_TRUE(calls("cuMemAllocManaged").empty());
  EXPECT_EQ(front, calls("cuMemcpyHtoDAsync_v2").back()["to"]) << "ordinary memory is for any queue";
}

// Each group has a part of the queue, so many of them would touch pages everywhere.
TEST_F(LazyMemoryTest, QueuesOfManyGroupsHaveOrdinaryMemory) {
  launch(looping_groups_, nullptr, 2 * 16);
  EXPECT_EQ(1u, calls("cuMemAllocManaged").size());
  forget_calls();
  launch(looping_groups_, nullptr, 2 * 17);
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size()) << "the queue";
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
  for (const std::string call : {"cuMemAllocManaged=2", "cuMemAdvise=801", "cuMemPrefetchAsync=1"}) {
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

TEST_F(LazyMemoryTest, WithoutMemoryForTheFrontTheOriginalRuns) {
  const Launch nesting = launch_of(nesting_);
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
  EXPECT_FALSE(redirect_launch(nesting).has_value());
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_LE(1u, calls("cuMemAllocManaged").size());
  forget_calls();
  launch(nesting_);
  EXPECT_EQ(0u, calls("cuMemAllocManaged").size()) << "it is still there";
  EXPECT_LT(0u, head().places.front_records);
}

TEST_F(LazyMemoryTest, QueuesThatHaveSuchMemoryKeepItIfALaterCallFails) {
  const CUstream first = new_stream();
  launch(nesting_, first);
  forget_calls();
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
  ASSERT_TRUE(give_back_queue_memory());
  EXPECT_EQ(2u, calls("cuMemFree_v2").size()) << "with the front";
  launch(nesting_);
  EXPECT_EQ(2u, calls("cuMemAllocManaged").size());
}

LazyShape shape_of(uint64_t most_used) { return {2 * most_used, most_used, 4096}; }

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
  forget_calls();
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
