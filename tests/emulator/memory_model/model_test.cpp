// Weak values beyond the litmus shapes: barriers, grids, .nc loads, access sizes, and how long a write may
// hide.
#include "emulator/memory_model/model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <set>

namespace klap::emulator {
namespace {

constexpr AccessKind kWeak{Semantics::Weak, Scope::Sys, false};
constexpr AccessKind kNonCoherent{Semantics::NonCoherent, Scope::Sys, false};
constexpr AccessKind kVolatile{Semantics::Volatile, Scope::Sys, false};

class WeakMemory : public testing::Test {
 protected:
  explicit WeakMemory(const MemoryModelOptions& options = {.weak_memory = true, .stale_percent = 50})
      : order(options, [](const std::string&) {}) {}
  Agent* thread(uint64_t block, const HistoryRef& after = nullptr) {
    return order.start(block, after, nullptr);
  }
  template <typename T>
  void store(Agent* agent, size_t at, T value, AccessKind kind = kWeak) {
    order.store(agent, address(at), std::as_bytes(std::span(&value, 1)), kind, {});
    std::memcpy(memory.data() + at, &value, sizeof(T));
  }
  template <typename T>
  T load(Agent* agent, size_t at, AccessKind kind = kWeak) {
    T value;
    std::memcpy(&value, memory.data() + at, sizeof(T));
    order.load(agent, address(at), std::as_writable_bytes(std::span(&value, 1)), kind, {});
    return value;
  }
  // All values that many loads return, each by a new thread, so that none has seen anything yet.
  template <typename T>
  std::set<T> values(size_t at, const HistoryRef& after = nullptr, AccessKind kind = kWeak) {
    std::set<T> all;
    for (int i = 0; i < 300; ++i) {
      Agent* agent = thread(1000 + next_block++, after);
      all.insert(load<T>(agent, at, kind));
      order.end(agent);
    }
    return all;
  }
  uint64_t address(size_t at) { return reinterpret_cast<uint64_t>(memory.data() + at); }

  alignas(64) std::array<std::byte, 1024> memory{};
  MemoryModel order;
  uint64_t next_block = 0;
};

TEST_F(WeakMemory, AnyOfTheLastWritesMayBeSeen) {
  Agent* a = thread(1);
  for (uint32_t i = 1; i <= 5; ++i) store(a, 0, i);
  EXPECT_EQ(values<uint32_t>(0), (std::set<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(WeakMemory, TheListOfWritesIsLimited) {
  Agent* a = thread(1);
  for (uint32_t i = 1; i <= 1000; ++i) store(a, 0, i);
  auto all = values<uint32_t>(0);
  EXPECT_GE(*all.begin(), 980u);
  EXPECT_EQ(*all.rbegin(), 1000u);
  EXPECT_GT(all.size(), 10u);
}

TEST_F(WeakMemory, SharedMemoryIsWeakWithinABlockUntilABarrier) {
  std::set<uint32_t> before, after;
  for (size_t at = 0; at < 1000; at += 4) {
    Agent *a = thread(at), *b = thread(at);
    store(a, at, 1u);
    before.insert(load<uint32_t>(b, at));
    order.barrier(std::array{a, b});
    after.insert(load<uint32_t>(b, at));
  }
  EXPECT_EQ(before, (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(after, (std::set<uint32_t>{1}));
}

TEST_F(WeakMemory, BarriersPassOnWhatWasAcquired) {  // one thread acquires, the whole block knows
  for (size_t at = 0; at < 1000; at += 8) {
    Agent *a = thread(at), *b = thread(at + 1), *c = thread(at + 1);
    store(a, at, 1u);
    store(a, at + 4, 1u, {Semantics::Release, Scope::Gpu, false});
    while (load<uint32_t>(b, at + 4, {Semantics::Acquire, Scope::Gpu, false}) == 0) {
    }
    order.barrier(std::array{b, c});
    ASSERT_EQ(load<uint32_t>(c, at), 1u);
  }
}

TEST_F(WeakMemory, AGridSeesWhatCameBeforeItsLaunch) {
  Agent* parent = thread(1);
  store(parent, 0, 1u);
  store(parent, 0, 2u);
  HistoryRef launch = order.now(parent);
  store(parent, 0, 3u);
  EXPECT_EQ(values<uint32_t>(0, launch), (std::set<uint32_t>{2, 3}));
  HistoryRef end = order.end(parent);
  EXPECT_EQ(values<uint32_t>(0, end), (std::set<uint32_t>{3}));
  EXPECT_EQ(values<uint32_t>(0, MemoryModel::both(launch, end)), (std::set<uint32_t>{3}));
}

TEST_F(WeakMemory, NonCoherentLoadsMayReturnWhatWasThereAtTheStart) {
  Agent* before = thread(1);
  store(before, 0, 1u);
  store(before, 0, 2u);
  HistoryRef start = order.end(before);
  Agent* other = thread(2, start);
  store(other, 0, 3u);
  store(other, 0, 4u);
  HistoryRef done = order.end(other);
  std::set<uint32_t> all;
  for (uint64_t i = 0; i < 300; ++i) {
    Agent* reader = thread(100 + i, start);
    order.join(reader, done);
    ASSERT_EQ(load<uint32_t>(reader, 0), 4u);
    all.insert(load<uint32_t>(reader, 0, kNonCoherent));
    ASSERT_EQ(load<uint32_t>(reader, 0), 4u);
  }
  EXPECT_EQ(all, (std::set<uint32_t>{2, 3, 4}));
  EXPECT_EQ(values<uint32_t>(0, MemoryModel::both(start, done), kNonCoherent), (std::set<uint32_t>{4}));
}

TEST_F(WeakMemory, WideLoadsNeverSeeHalfOfAStore) {
  Agent* a = thread(1);
  using Wide = std::array<uint64_t, 2>;
  store(a, 0, uint64_t{0x0000000100000001});
  store(a, 0, uint64_t{0x0000000200000002});
  store(a, 16, Wide{1, 1});
  store(a, 16, Wide{2, 2});
  EXPECT_EQ(values<uint64_t>(0), (std::set<uint64_t>{0, 0x0000000100000001, 0x0000000200000002}));
  EXPECT_EQ(values<Wide>(16), (std::set<Wide>{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(values<uint32_t>(4), (std::set<uint32_t>{0, 1, 2}));
}

TEST_F(WeakMemory, NarrowStoresAreSeenOneByOne) {
  Agent* a = thread(1);
  store<uint8_t>(a, 0, 1);
  store<uint8_t>(a, 1, 2);
  store<uint16_t>(a, 2, 3);
  EXPECT_EQ(values<uint8_t>(1), (std::set<uint8_t>{0, 2}));
  EXPECT_EQ(values<uint16_t>(2), (std::set<uint16_t>{0, 3}));
  EXPECT_EQ(values<uint32_t>(0), (std::set<uint32_t>{0, 1, 0x201, 0x30201}));
  EXPECT_EQ(values<uint8_t>(3), (std::set<uint8_t>{0}));
}

TEST_F(WeakMemory, NeighboursInOneWordHideIndependently) {  // data and flag in one word
  int weak = 0;
  for (size_t at = 0; at < 1000; at += 4) {
    Agent *a = thread(at), *b = thread(at + 1);
    store<uint8_t>(a, at, 1);
    store<uint8_t>(a, at + 1, 1);
    uint8_t flag = load<uint8_t>(b, at + 1);
    weak += flag && !load<uint8_t>(b, at);
  }
  EXPECT_GT(weak, 0);
}

TEST_F(WeakMemory, ValuesBeforeTheFirstStoreAreThoseOfMemory) {
  std::memset(memory.data(), 0x11, memory.size());
  Agent* a = thread(1);
  store<uint8_t>(a, 5, 0x22);
  EXPECT_EQ(values<uint64_t>(0), (std::set<uint64_t>{0x1111111111111111, 0x1111221111111111}));
}

TEST_F(WeakMemory, WritesOfTheHostAreSeenByAll) {
  Agent* a = thread(1);
  store(a, 0, 1u);
  uint32_t copied = 9;
  std::memcpy(memory.data(), &copied, sizeof copied);
  order.initialised(address(0), 4);
  EXPECT_EQ(values<uint32_t>(0), (std::set<uint32_t>{9}));
  store(a, 0, 1u);
  EXPECT_EQ(values<uint32_t>(0), (std::set<uint32_t>{1, 9}));
  order.synchronise_all();
  EXPECT_EQ(values<uint32_t>(0), (std::set<uint32_t>{1}));
}

TEST_F(WeakMemory, FailedUpdatesAreReadsOfTheNewest) {
  Agent *a = thread(1), *b = thread(2);
  for (int i = 1; i <= 200; ++i) {
    store(a, 0, i);
    order.update(b, address(0), std::as_bytes(std::span(&i, 1)), false,
                 {Semantics::Relaxed, Scope::Gpu, true}, {});
    ASSERT_EQ(load<int>(b, 0), i);
  }
}

class NeverNewest : public WeakMemory {
 protected:
  NeverNewest() : WeakMemory({.weak_memory = true, .stale_percent = 100, .hidden_steps = 500}) {}
};

TEST_F(NeverNewest, AWriteIsSeenInTheEnd) {
  for (AccessKind kind : {kWeak, kVolatile, kNonCoherent}) {
    order.synchronise_all();
    memory.fill({});
    Agent *a = thread(++next_block), *b = thread(++next_block);
    store(a, 0, 1u);
    int steps = 0;
    for (; load<uint32_t>(b, 0, kind) == 0; ++steps) order.advance(1);
    EXPECT_GE(steps, 499);
    EXPECT_LE(steps, 501);
  }
}

// Threads that pass a token around by release and acquire, over blocks, barriers and grids: each must see all
// that came before, however long the chain.
TEST_F(NeverNewest, OrderIsTransitiveOverEverything) {
  std::mt19937 random(3);
  constexpr AccessKind kAcquire{Semantics::Acquire, Scope::Gpu, false},
      kRelease{Semantics::Release, Scope::Gpu, false};
  Agent* holder = thread(++next_block);
  for (uint32_t round = 1; round < 3000; ++round) {
    ASSERT_EQ(load<uint32_t>(holder, 0), round - 1);
    store(holder, 0, round);
    Agent* next = nullptr;
    switch (random() % 5) {
      case 0:
        next = thread(++next_block, order.now(holder));
        break;
      case 1:
        next = thread(++next_block, order.end(holder));
        break;
      case 2:
        next = thread(++next_block);
        store(holder, 4, round, kRelease);
        while (load<uint32_t>(next, 4, kAcquire) != round) order.advance(100);
        break;
      case 3: {
        Agent* both[] = {thread(++next_block, order.now(holder)), thread(next_block)};
        order.barrier(both);
        order.end(both[0]);
        next = both[1];
        break;
      }
      default:
        next = thread(++next_block);
        order.fence(holder, true, Scope::Gpu);
        order.fence(next, true, Scope::Gpu);
    }
    holder = next;
  }
}

}  // namespace
}  // namespace klap::emulator
