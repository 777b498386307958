// What the race detector and the check for uninitialised memory report, and what they do not.
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "litmus.h"

namespace klap::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr AccessKind kPlain{Semantics::Weak, Scope::Sys, false};
constexpr AccessKind kStrong{Semantics::Relaxed, Scope::Gpu, false};
constexpr AccessKind kStrongCta{Semantics::Relaxed, Scope::Cta, false};
constexpr AccessKind kStrongVolatile{Semantics::Volatile, Scope::Sys, false};
constexpr AccessKind kAtomic{Semantics::Relaxed, Scope::Gpu, true};

class Races : public testing::TestWithParam<bool> {  // with weak memory as well, or not
 protected:
  Races() {
    MemoryModelOptions options{.weak_memory = GetParam(), .detect_races = true};
    make(options);
  }
  void make(const MemoryModelOptions& options) {
    order =
        std::make_unique<MemoryModel>(options, [this](const std::string& text) { found.push_back(text); });
  }
  Agent* thread(uint64_t block, const HistoryRef& after = nullptr) {
    std::string name = "thread " + std::to_string(threads++);
    return order->start(block, after, [name] { return name; });
  }
  template <typename T>
  void store(Agent* agent, size_t at, T value, AccessKind kind = kPlain, uint32_t line = 0) {
    order->store(agent, address(at), std::as_bytes(std::span(&value, 1)), kind,
                 {nullptr, line ? line : next_line++});
    std::memcpy(memory.data() + at, &value, sizeof(T));
  }
  template <typename T = uint32_t>
  T load(Agent* agent, size_t at, AccessKind kind = kPlain, uint32_t line = 0) {
    T value;
    std::memcpy(&value, memory.data() + at, sizeof(T));
    order->load(agent, address(at), std::as_writable_bytes(std::span(&value, 1)), kind,
                {nullptr, line ? line : next_line++});
    return value;
  }
  void add(Agent* agent, size_t at, uint32_t by, AccessKind kind = kAtomic) {
    uint32_t value;
    std::memcpy(&value, memory.data() + at, sizeof value);
    value += by;
    order->update(agent, address(at), std::as_bytes(std::span(&value, 1)), true, kind,
                  {nullptr, next_line++});
    std::memcpy(memory.data() + at, &value, sizeof value);
  }
  uint64_t address(size_t at) { return reinterpret_cast<uint64_t>(memory.data() + at); }

  alignas(64) std::array<std::byte, 1024> memory{};
  std::vector<std::string> found;
  std::unique_ptr<MemoryModel> order;
  int threads = 0;
  uint32_t next_line = 1;
};
INSTANTIATE_TEST_SUITE_P(, Races, testing::Bool());

TEST_P(Races, ReadAfterWriteIsReportedWithBothSides) {
  Agent *a = thread(1), *b = thread(2);
  store(a, 16, 5u, kPlain, 11);
  load(b, 16, kPlain, 22);
  EXPECT_THAT(
      found, ElementsAre(AllOf(HasSubstr("data race on 4 bytes at 0x"), HasSubstr("thread 1 reads (line 22)"),
                               HasSubstr("thread 0 wrote (line 11)"), HasSubstr("nothing orders them"))));
}

TEST_P(Races, EachPairOfPlacesIsReportedOnce) {
  Agent *a = thread(1), *b = thread(2);
  for (size_t i = 0; i < 10; ++i) {
    store(a, 4 * i, 5u, kPlain, 11);
    load(b, 4 * i, kPlain, 22);
  }
  EXPECT_THAT(found, SizeIs(1));
}

// The last of several that count resets the counter: it took the values of all others.
TEST_P(Races, PlainStoreAfterACounterThatAllIncreased) {
  Agent *a = thread(1), *b = thread(2), *c = thread(3);
  add(a, 0, 1);
  add(b, 0, 1);
  add(c, 0, 1);
  store(c, 0, 0u);
  EXPECT_THAT(found, IsEmpty());
}

TEST_P(Races, PlainStoreOfACounterThatOthersStillIncrease) {
  Agent *a = thread(1), *b = thread(2), *c = thread(3);
  add(a, 0, 1);
  add(c, 0, 1);
  add(b, 0, 1);
  store(c, 0, 0u);
  EXPECT_THAT(found, ElementsAre(HasSubstr("thread 1 updates atomically")));
}

// What the counting threads did before is not ordered by that.
TEST_P(Races, CountingAloneReleasesNothing) {
  Agent *a = thread(1), *b = thread(2);
  load(a, 16);
  add(a, 0, 1);
  add(b, 0, 1);
  store(b, 16, 1u);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, ACounterOfTooSmallScopeIsNotTaken) {
  Agent *a = thread(1), *b = thread(2);
  add(a, 0, 1, {Semantics::Relaxed, Scope::Cta, true});
  add(b, 0, 1, {Semantics::Relaxed, Scope::Cta, true});
  store(b, 0, 0u);
  EXPECT_THAT(found, SizeIs(testing::Ge(1)));
}

TEST_P(Races, WriteAfterReadAndWriteAfterWrite) {
  Agent *a = thread(1), *b = thread(1);
  load(a, 0);
  store(b, 0, 1u);
  EXPECT_THAT(found, SizeIs(1));
  store(a, 4, 1u);
  store(b, 4, 2u);
  EXPECT_THAT(found, SizeIs(2));
  load(a, 8);
  load(b, 8);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Races, ABarrierOrdersItsThreadsOnly) {
  Agent *a = thread(1), *b = thread(1), *c = thread(1), *other = thread(2);
  store(a, 0, 1u);
  order->barrier(std::array{a, b});
  load(b, 0);
  EXPECT_THAT(found, IsEmpty());
  load(c, 0);
  EXPECT_THAT(found, SizeIs(1));
  order->barrier(std::array{a, b, c});
  store(c, 0, 2u);
  EXPECT_THAT(found, SizeIs(1));
  load(other, 0);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Races, WhatComesAfterABarrierIsNotOrderedByIt) {
  Agent *a = thread(1), *b = thread(1);
  order->barrier(std::array{a, b});
  store(a, 0, 1u);
  load(b, 0);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, AThreadThatLeftDidNotTakePartInTheBarrier) {
  Agent *a = thread(1), *b = thread(1), *c = thread(1);
  store(a, 0, 1u, kPlain, 77);
  order->end(a);
  order->barrier(std::array{b, c});
  load(b, 0);
  EXPECT_THAT(found, ElementsAre(HasSubstr("thread 0 wrote (line 77)")));
}

TEST_P(Races, ArrivingOrdersWhatCameBefore) {
  Agent *a = thread(1), *b = thread(1);
  store(a, 0, 1u);
  HistoryRef arrival = order->now(a);
  store(a, 4, 1u);
  order->join(b, arrival);
  load(b, 0);
  EXPECT_THAT(found, IsEmpty());
  load(b, 4);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, StrongAccessesInScopeDoNotRace) {
  Agent *a = thread(1), *b = thread(2);
  store(a, 0, 1u, kStrong);
  load(b, 0, kStrong);
  load(b, 0, kStrongVolatile);
  add(b, 0, 1);
  add(a, 0, 1);
  EXPECT_THAT(found, IsEmpty());
  store(a, 4, 1u, kStrongCta);
  load(b, 4, kStrong);
  EXPECT_THAT(found, ElementsAre(HasSubstr("a scope does not reach the other")));
  load(b, 0);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Races, ScopeCtaReachesTheBlock) {
  Agent *a = thread(1), *b = thread(1);
  store(a, 4, 1u, kStrongCta);
  load(b, 4, kStrongCta);
  EXPECT_THAT(found, IsEmpty());
}

TEST_P(Races, TheHostNeedsScopeSys) {
  Agent *host = thread(kHostBlock), *a = thread(1);
  store(a, 0, 1u, kStrongVolatile);
  load(host, 0, kStrongVolatile);
  EXPECT_THAT(found, IsEmpty());
  store(a, 4, 1u, kStrong);
  load(host, 4, kStrongVolatile);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, StrongAccessesOfDifferentSizeRace) {
  Agent *a = thread(1), *b = thread(2);
  store(a, 0, uint64_t{1}, kStrong);
  load<uint32_t>(b, 0, kStrong);
  EXPECT_THAT(found, ElementsAre(HasSubstr("of different size")));
}

TEST_P(Races, AWeakResetThatNothingOrdersWithAtomicsIsFound) {
  Agent *first = thread(1), *second = thread(2), *late = thread(3);
  store(first, 0, 7u);
  HistoryRef reset = order->now(first);
  order->join(second, reset);
  add(second, 0, 1);
  for (int i = 0; i < 40; ++i) add(second, 0, 1);
  EXPECT_THAT(found, IsEmpty());
  add(late, 0, 1);
  EXPECT_THAT(found, SizeIs(1));
}

// A counter that the last one resets: its own update saw all the others'. Nothing else of theirs is ordered
// by that.
TEST_P(Races, AResetAfterTheLastUpdateIsOrderedWithAllUpdates) {
  Agent* first = thread(0);
  Agent* second = thread(1);
  Agent* last = thread(2);
  store(first, 8, 1u);
  add(first, 0, 1);
  add(second, 0, 1);
  add(last, 0, 1);
  store(last, 0, 0u);
  EXPECT_THAT(found, IsEmpty());
  load(last, 8);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, AResetBeforeAnothersUpdateIsFound) {
  Agent* first = thread(0);
  Agent* last = thread(1);
  add(last, 0, 1);
  add(first, 0, 1);
  store(last, 0, 0u);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, ALateReaderOfCountersThatWereResetIsFound) {
  std::vector<Agent*> all;
  for (uint64_t block = 1; block <= 100; ++block) all.push_back(thread(block));
  Agent* last = thread(200);
  for (Agent* agent : all) load(agent, 0, kPlain, 10);
  for (size_t i = 0; i + 1 < all.size(); ++i) order->join(last, order->now(all[i]));
  store(last, 0, 9u, kPlain, 20);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, ReleaseAndAcquireOrder) {
  Agent *a = thread(1), *b = thread(2);
  store(a, 0, 1u);
  store(a, 4, 1u, {Semantics::Release, Scope::Gpu, false});
  while (load(b, 4, {Semantics::Acquire, Scope::Gpu, false}) == 0) {
  }
  load(b, 0);
  EXPECT_THAT(found, IsEmpty());
  store(a, 8, 1u);  // after the release
  load(b, 8);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, AtomicsWithFencesOrder) {  // the last block of several reads what all wrote
  std::vector<Agent*> all;
  for (uint64_t block = 1; block <= 20; ++block) all.push_back(thread(block));
  for (size_t i = 0; i < all.size(); ++i) {
    store(all[i], 100 + 4 * i, 1u);
    order->fence(all[i], true, Scope::Gpu);
    add(all[i], 0, 1);
  }
  order->fence(all.back(), true, Scope::Gpu);
  for (size_t i = 0; i < all.size(); ++i) load(all.back(), 100 + 4 * i);
  EXPECT_THAT(found, IsEmpty());
}

TEST_P(Races, AMissingFenceBeforeTheLastBlockIsFound) {
  std::vector<Agent*> all;
  for (uint64_t block = 1; block <= 20; ++block) all.push_back(thread(block));
  for (size_t i = 0; i < all.size(); ++i) {
    store(all[i], 100 + 4 * i, 1u, kPlain, 10);
    if (i != 7) order->fence(all[i], false, Scope::Gpu);
    add(all[i], 0, 1);
  }
  order->fence(all.back(), false, Scope::Gpu);
  for (size_t i = 0; i < all.size(); ++i) load(all.back(), 100 + 4 * i, kPlain, 20);
  EXPECT_THAT(found, SizeIs(1));
}

// Nobody released the updates themselves, but the last one read what they wrote.
TEST_P(Races, WhoUpdatesLastComesAfterTheUpdatesBefore) {
  Agent *a = thread(1), *b = thread(2), *last = thread(3), *later = thread(4), *late = thread(5);
  for (Agent* agent : {a, b, last}) {
    order->fence(agent, true, Scope::Gpu);
    add(agent, 0, 1);
  }
  store(last, 0, 0u);
  order->join(later, order->now(last));
  add(later, 0, 1);
  EXPECT_THAT(found, IsEmpty());
  add(late, 0, 1);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, WhoUpdatesEarlyDoesNotComeAfterLaterUpdates) {
  Agent *early = thread(1), *late = thread(2);
  add(early, 0, 1);
  add(late, 0, 1);
  EXPECT_THAT(found, IsEmpty());
  store(early, 0, 0u);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, AStoreBetweenUpdatesSeparatesThem) {
  Agent *a = thread(1), *b = thread(2), *last = thread(3);
  add(a, 0, 1);
  store(b, 0, 5u, kStrong);
  add(last, 0, 1);
  EXPECT_THAT(found, IsEmpty());
  load(last, 0);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, GridsAreOrderedByWhatTheyComeAfter) {
  Agent* parent = thread(1);
  store(parent, 0, 1u);
  HistoryRef launch = order->now(parent);
  store(parent, 4, 1u);  // after the launch
  std::vector<Agent*> children;
  for (uint64_t i = 0; i < 64; ++i) children.push_back(thread(10 + i / 8, launch));
  HistoryRef done;
  for (size_t i = 0; i < children.size(); ++i) {
    load(children[i], 0);
    store(children[i], 100 + 4 * i, 1u);
    done = MemoryModel::both(done, order->end(children[i]));
  }
  EXPECT_THAT(found, IsEmpty());
  Agent *next = thread(100, done), *unordered = thread(101, launch);
  load(next, 0);
  for (size_t i = 0; i < children.size(); ++i) load(next, 100 + 4 * i);
  EXPECT_THAT(found, IsEmpty());
  load(next, 4);
  EXPECT_THAT(found, SizeIs(1));
  load(unordered, 120);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Races, SynchronisationForgetsEverything) {
  Agent *a = thread(1), *host = thread(kHostBlock);
  HistoryRef old = order->now(a);
  store(a, 0, 1u);
  order->end(a);
  order->synchronise_all();
  load(host, 0);
  store(host, 0, 4u);
  order->synchronise_all();
  store(thread(2, old), 0, 2u);
  EXPECT_THAT(found, IsEmpty());
  load(thread(3, nullptr), 0);
  EXPECT_THAT(found, SizeIs(1));
}

TEST_P(Races, StoringTheSameValueIsIgnoredUnlessAsked) {
  for (bool ignored : {true, false}) {
    memory.fill({});
    found.clear();
    make({.weak_memory = GetParam(), .detect_races = true, .ignore_same_value = ignored});
    Agent *a = thread(1), *b = thread(2), *c = thread(3);
    store(a, 0, 1u);
    store(b, 0, 1u);
    EXPECT_THAT(found, SizeIs(ignored ? 0 : 1));
    found.clear();
    store(c, 0, 2u);
    EXPECT_THAT(found, SizeIs(2));
  }
}

TEST_P(Races, BytesOfOneWordAreApart) {
  Agent *a = thread(1), *b = thread(2);
  store<uint8_t>(a, 0, 1);
  store<uint8_t>(b, 1, 1);
  store<uint16_t>(a, 2, 1);
  EXPECT_THAT(found, IsEmpty());
  EXPECT_EQ(load<uint8_t>(b, 1), 1);
  load<uint16_t>(b, 0);
  EXPECT_THAT(found, SizeIs(1));
  store(a, 8, uint64_t{1});
  store(a, 16, uint64_t{1});
  load<uint32_t>(b, 12);
  load<std::array<uint64_t, 2>>(b, 16);
  EXPECT_THAT(found, SizeIs(3));
}

TEST_P(Races, MemoryThatIsUsedAgainHasNoPast) {
  Agent *a = thread(1), *b = thread(2);
  store(a, 0, 1u);
  order->freed(address(0), 16);
  order->allocated(address(0), 16);
  store(b, 0, 2u);
  EXPECT_THAT(found, IsEmpty());
}

// ---- uninitialised memory ----

class Uninitialised : public Races {
 protected:
  Uninitialised() { make({.weak_memory = GetParam(), .detect_uninitialised = true}); }
};
INSTANTIATE_TEST_SUITE_P(, Uninitialised, testing::Bool());

TEST_P(Uninitialised, ReadsAreReportedOncePerPlace) {
  Agent* a = thread(1);
  load(a, 0);
  order->allocated(address(0), 64);
  load(a, 4, kPlain, 50);
  load(a, 8, kPlain, 50);
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("thread 0 reads uninitialised memory: 4 bytes at 0x"),
                                       HasSubstr("(line 50)"))));
  add(a, 8, 1);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Uninitialised, BytesAreToldApart) {
  Agent* a = thread(1);
  order->allocated(address(0), 64);
  store<uint8_t>(a, 1, 1);
  load<uint8_t>(a, 1);
  EXPECT_THAT(found, IsEmpty());
  load<uint16_t>(a, 0);
  EXPECT_THAT(found, SizeIs(1));
  order->initialised(address(0), 63);
  load<uint32_t>(a, 0);
  load<uint16_t>(a, 60);
  EXPECT_THAT(found, SizeIs(1));
  load<uint32_t>(a, 60);
  EXPECT_THAT(found, SizeIs(2));
  order->freed(address(0), 64);
  load<uint32_t>(a, 60);
  EXPECT_THAT(found, SizeIs(2));
}

TEST_P(Uninitialised, LargeAllocationsCostLittleAndAreExact) {
  constexpr uint64_t kFar = 1ull << 46, kBytes = 3ull << 30;  // never touched
  if (GetParam()) return;
  Agent* a = thread(1);
  std::array<std::byte, 4> value{};
  order->allocated(kFar + 8, kBytes);
  auto finds = [&](uint64_t at) {
    size_t before = found.size();
    order->load(a, at, value, kPlain, {nullptr, next_line++});
    return found.size() > before;
  };
  EXPECT_FALSE(finds(kFar + 4));
  EXPECT_TRUE(finds(kFar + 8));
  EXPECT_TRUE(finds(kFar + 4 + kBytes));
  EXPECT_FALSE(finds(kFar + 8 + kBytes));
  order->store(a, kFar + (1 << 20), value, kPlain, {});
  EXPECT_FALSE(finds(kFar + (1 << 20)));
  EXPECT_TRUE(finds(kFar + (1 << 20) + 4));
  EXPECT_TRUE(finds(kFar + (1 << 20) - 4));
}

}  // namespace
}  // namespace klap::emulator
