// The classic litmus shapes: what PTX forbids never comes out, and weak outcomes do where nothing forbids
// them.
#include "litmus.h"

#include <gmock/gmock.h>

namespace klap::emulator::test {
namespace {

constexpr uint32_t x = 0, y = 1;
using enum Semantics;
using Values = std::vector<uint32_t>;

bool seen(const std::vector<Thread>& threads, const Values& values) {
  auto all = outcomes(threads, values.size());
  EXPECT_GT(all.size(), 1u) << "only one outcome at all: the test shows nothing";
  return all.count(values) != 0;
}

// ---- message passing: data x, flag y; forbidden with order: flag seen, data not ----

std::vector<Thread> message(uint64_t other_block, Step release, Step acquire, Semantics data = Weak) {
  return {{1, {write(x, 1, data), release}}, {other_block, {acquire, read(x, 1, data)}}};
}

TEST(MessagePassing, IsWeakWithoutOrder) {
  for (uint64_t block : {1, 2})
    for (Semantics s : {Weak, Relaxed, Volatile})
      EXPECT_TRUE(seen(message(block, write(y, 1, s), read(y, 0, s), s), {1, 0}));
}

TEST(MessagePassing, NeedsBothTheReleaseAndTheAcquire) {
  EXPECT_TRUE(seen(message(2, write(y, 1, Release), read(y, 0)), {1, 0}));
  EXPECT_TRUE(seen(message(2, write(y, 1), read(y, 0, Acquire)), {1, 0}));
  EXPECT_FALSE(seen(message(2, write(y, 1, Release), read(y, 0, Acquire)), {1, 0}));
}

TEST(MessagePassing, ScopesMustReachBothWays) {
  for (Scope release : {Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys})
    for (Scope acquire : {Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys})
      for (uint64_t block : {uint64_t{1}, uint64_t{2}, kHostBlock}) {
        Scope needed = block == 1 ? Scope::Cta : block == 2 ? Scope::Gpu : Scope::Sys;
        bool ordered = release >= needed && acquire >= needed;
        EXPECT_EQ(seen(message(block, write(y, 1, Release, release), read(y, 0, Acquire, acquire)), {1, 0}),
                  !ordered)
            << static_cast<int>(release) << " " << static_cast<int>(acquire) << " " << block;
      }
}

std::vector<Thread> fenced_message(uint64_t block, Step first, Step second, Semantics flag,
                                   Scope flag_scope) {
  return {{1, {write(x, 1, Weak), first, write(y, 1, flag, flag_scope)}},
          {block, {read(y, 0, flag, flag_scope), second, read(x, 1, Weak)}}};
}

TEST(MessagePassing, FencesOrderStrongFlagsOnly) {
  for (bool sequential : {false, true}) {
    Step f = fence(sequential, Scope::Gpu);
    EXPECT_FALSE(seen(fenced_message(2, f, f, Relaxed, Scope::Gpu), {1, 0}));
    EXPECT_FALSE(seen(fenced_message(2, f, f, Volatile, Scope::Gpu), {1, 0}));
    EXPECT_TRUE(seen(fenced_message(2, f, fence(sequential, Scope::Cta), Relaxed, Scope::Gpu), {1, 0}));
    EXPECT_TRUE(seen(fenced_message(2, fence(sequential, Scope::Cta), f, Relaxed, Scope::Gpu), {1, 0}));
    // Two sequential fences are ordered whatever lies between them.
    EXPECT_EQ(seen(fenced_message(2, f, f, Relaxed, Scope::Cta), {1, 0}), !sequential);
    EXPECT_FALSE(seen(fenced_message(1, f, f, Relaxed, Scope::Cta), {1, 0}));
  }
  Step f = fence(false, Scope::Gpu);
  EXPECT_TRUE(seen(fenced_message(2, f, f, Weak, Scope::Gpu), {1, 0}));
}

TEST(MessagePassing, FenceAndReleaseMayBeMixed) {
  EXPECT_FALSE(seen(
      {{1, {write(x, 1, Weak), fence(false), write(y, 1)}}, {2, {read(y, 0, Acquire), read(x, 1, Weak)}}},
      {1, 0}));
  EXPECT_FALSE(seen(
      {{1, {write(x, 1, Weak), write(y, 1, Release)}}, {2, {read(y, 0), fence(false), read(x, 1, Weak)}}},
      {1, 0}));
}

TEST(MessagePassing, AStoreBeforeTheFenceCarriesNothing) {
  EXPECT_TRUE(seen(
      {{1, {write(x, 1, Weak), write(y, 1), fence(false)}}, {2, {read(y, 0, Acquire), read(x, 1, Weak)}}},
      {1, 0}));
}

TEST(MessagePassing, ReadModifyWritesContinueARelease) {
  Step acquire = read(y, 0, Acquire), data = read(x, 1, Weak);
  auto passes = [&](Semantics release, Scope scope) {
    return std::vector<Thread>{{1, {write(x, 1, Weak), write(y, 1, release)}},
                               {2, {add(y, 10, 2, Relaxed, scope)}},
                               {3, {acquire, data}}};
  };
  auto lost = [](const std::vector<Thread>& threads) {
    for (auto& [values, count] : outcomes(threads, 3))
      if (values[0] == 11 && values[1] == 0 && values[2] == 1) return true;
    return false;
  };
  EXPECT_FALSE(lost(passes(Release, Scope::Gpu)));
  EXPECT_TRUE(lost(passes(Relaxed, Scope::Gpu)));
  EXPECT_TRUE(lost(passes(Release, Scope::Cta)));
}

TEST(MessagePassing, AStoreOfAnotherThreadEndsARelease) {
  EXPECT_TRUE(seen({{1, {write(x, 1, Weak), write(y, 1, Release)}},
                    {2, {write(y, 2)}},
                    {3, {read(y, 0, Acquire), read(x, 1, Weak)}}},
                   {2, 0}));
}

TEST(MessagePassing, ALaterStoreOfTheSameThreadContinuesARelease) {
  EXPECT_FALSE(seen({{1, {write(x, 1, Weak), write(y, 1, Release), write(y, 2)}},
                     {2, {read(y, 0, Acquire), read(x, 1, Weak)}}},
                    {2, 0}));
}

TEST(MessagePassing, AnAcquireCompletesAnEarlierReadOfTheFlag) {
  EXPECT_FALSE(seen({{1, {write(x, 1, Weak), write(y, 1, Release)}},
                     {3, {write(y, 2)}},
                     {2, {read(y, 0), read(y, 2, Acquire), read(x, 1, Weak)}}},
                    {1, 0, 2}));
}

TEST(MessagePassing, AtomicsAcquireAndRelease) {
  EXPECT_FALSE(seen(message(2, add(y, 1, -1, AcquireRelease), add(y, 0, 0, AcquireRelease)), {1, 0}));
  EXPECT_TRUE(seen(message(2, add(y, 1, -1), add(y, 0, 0)), {1, 0}));
}

TEST(MessagePassing, NonCoherentLoadsIgnoreTheAcquire) {
  EXPECT_TRUE(seen(
      {{1, {write(x, 1, Weak), write(y, 1, Release)}}, {2, {read(y, 0, Acquire), read(x, 1, NonCoherent)}}},
      {1, 0}));
}

// ---- store buffering ----

std::vector<Thread> buffering(uint64_t block, const std::vector<Step>& middle, Semantics w = Relaxed,
                              Semantics r = Relaxed) {
  std::vector<Thread> threads{{1, {write(x, 1, w)}}, {block, {write(y, 1, w)}}};
  for (Thread& thread : threads) thread.steps.insert(thread.steps.end(), middle.begin(), middle.end());
  threads[0].steps.push_back(read(y, 0, r));
  threads[1].steps.push_back(read(x, 1, r));
  return threads;
}

TEST(StoreBuffering, OnlySequentialFencesForbidIt) {
  for (uint64_t block : {1, 2}) {
    EXPECT_TRUE(seen(buffering(block, {}), {0, 0}));
    EXPECT_TRUE(seen(buffering(block, {}, Weak, Weak), {0, 0}));
    EXPECT_TRUE(seen(buffering(block, {}, Release, Acquire), {0, 0}));
    EXPECT_TRUE(seen(buffering(block, {fence(false)}), {0, 0}));
    EXPECT_FALSE(seen(buffering(block, {fence(true)}), {0, 0}));
    EXPECT_FALSE(seen(buffering(block, {fence(true, Scope::Sys)}), {0, 0}));
    EXPECT_EQ(seen(buffering(block, {fence(true, Scope::Cta)}), {0, 0}), block == 2);
  }
  EXPECT_TRUE(seen(buffering(kHostBlock, {fence(true, Scope::Gpu)}), {0, 0}));
  EXPECT_FALSE(seen(buffering(kHostBlock, {fence(true, Scope::Sys)}, Volatile, Volatile), {0, 0}));
}

// ---- coherence of one location ----

TEST(Coherence, ReadsNeverGoBack) {  // CoRR
  auto all = outcomes({{1, {write(x, 1), write(x, 2)}}, {2, {read(x, 0), read(x, 1), read(x, 2)}}}, 3);
  for (auto& [values, count] : all) {
    EXPECT_LE(values[0], values[1]);
    EXPECT_LE(values[1], values[2]);
  }
  EXPECT_TRUE(all.count({0, 1, 2}));
  EXPECT_TRUE(all.count({0, 0, 2}));
}

TEST(Coherence, TwoReadersAgreeOnTheOrder) {
  auto all = outcomes(
      {{1, {write(x, 1)}}, {2, {write(x, 2)}}, {3, {read(x, 0), read(x, 1)}}, {4, {read(x, 2), read(x, 3)}}},
      4, 6000);
  EXPECT_FALSE(all.count({1, 2, 2, 1}));
  EXPECT_TRUE(all.count({1, 2, 1, 2}) && all.count({2, 1, 2, 1}));
}

TEST(Coherence, AThreadSeesItsOwnWrites) {  // CoWR, CoRW, CoWW
  for (auto& [values, count] : outcomes({{1, {write(x, 1), read(x, 0)}}, {2, {write(x, 2)}}}, 1))
    EXPECT_NE(values[0], 0u);
  auto all = outcomes({{1, {read(x, 0), write(x, 1), read(x, 1)}}, {2, {write(x, 2), read(x, 2)}}}, 3);
  for (auto& [values, count] : all) {
    EXPECT_NE(values[0], 1u);
    if (values[0] == 2) {
      EXPECT_EQ(values[1], 1u);
    }
    EXPECT_FALSE(values[1] == 2 && values[2] == 1);
  }
}

TEST(Coherence, WhatOneSawTheNextInOrderSees) {  // CoRR over two threads
  EXPECT_FALSE(seen(
      {{1, {write(x, 1)}}, {2, {read(x, 0), write(y, 1, Release)}}, {3, {read(y, 1, Acquire), read(x, 2)}}},
      {1, 1, 0}));
}

TEST(Coherence, UpdatesReadTheNewest) {
  for (auto& [values, count] : outcomes({{1, {add(x, 1, 0)}}, {2, {add(x, 1, 1)}}, {3, {add(x, 1, 2)}}}, 3))
    EXPECT_EQ(values[0] + values[1] + values[2], 3u);
}

// ---- three and four threads ----

TEST(WriteToReadCausality, HoldsWithReleaseAndAcquire) {
  auto threads = [](Semantics release, Semantics acquire) {
    return std::vector<Thread>{
        {1, {write(x, 1)}}, {2, {read(x, 0), write(y, 1, release)}}, {3, {read(y, 1, acquire), read(x, 2)}}};
  };
  EXPECT_FALSE(seen(threads(Release, Acquire), {1, 1, 0}));
  EXPECT_TRUE(seen(threads(Relaxed, Acquire), {1, 1, 0}));
  EXPECT_TRUE(seen(threads(Release, Relaxed), {1, 1, 0}));
}

TEST(IndependentReads, OnlySequentialFencesForbidDisagreement) {
  auto threads = [](const std::vector<Step>& middle, Semantics semantics) {
    std::vector<Thread> made{
        {1, {write(x, 1)}}, {2, {write(y, 1)}}, {3, {read(x, 0, semantics)}}, {4, {read(y, 2, semantics)}}};
    for (size_t i : {2, 3}) made[i].steps.insert(made[i].steps.end(), middle.begin(), middle.end());
    made[2].steps.push_back(read(y, 1, semantics));
    made[3].steps.push_back(read(x, 3, semantics));
    return made;
  };
  EXPECT_TRUE(seen(threads({}, Relaxed), {1, 0, 1, 0}));
  EXPECT_TRUE(seen(threads({}, Acquire), {1, 0, 1, 0}));
  EXPECT_TRUE(seen(threads({fence(false)}, Relaxed), {1, 0, 1, 0}));
  EXPECT_TRUE(seen(threads({fence(true, Scope::Cta)}, Relaxed), {1, 0, 1, 0}));
  EXPECT_FALSE(seen(threads({fence(true)}, Relaxed), {1, 0, 1, 0}));
}

TEST(LoadBuffering, IsNotProduced) {
  EXPECT_FALSE(seen({{1, {read(x, 0), write(y, 1)}}, {2, {read(y, 1), write(x, 1)}}}, {1, 1}));
  EXPECT_FALSE(
      seen({{1, {read(x, 0), write(y, 1, Release)}}, {2, {read(y, 1, Acquire), write(x, 1)}}}, {1, 1}));
}

TEST(TwoPlusTwoWrites, NeverEndsWithBothFirstWrites) {
  EXPECT_FALSE(seen({{1, {write(x, 1), fence(true), write(y, 2)}},
                     {2, {write(y, 1), fence(true), write(x, 2)}},
                     {3, {read(x, 0), read(x, 1)}},
                     {4, {read(y, 2), read(y, 3)}}},
                    {2, 1, 2, 1}));
}

TEST(Litmus, TheSameSeedGivesTheSameRun) {
  auto threads = buffering(2, {});
  EXPECT_EQ(outcomes(threads, 2), outcomes(threads, 2));
}

TEST(Litmus, WithoutWeakMemoryEveryLoadIsTheNewest) {
  for (uint64_t seed = 1; seed < 1000; ++seed) {
    auto outcome = run(buffering(2, {}), {.weak_memory = false, .detect_races = true, .seed = seed});
    EXPECT_TRUE(outcome.registers[0] || outcome.registers[1]);
  }
}

}  // namespace
}  // namespace klap::emulator::test
