// Modules in the memory of the process: found again, and not without end.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jit/cache/memory_cache.h"

namespace klap::jit {
namespace {

RewrittenModule module_of(size_t bytes) {
  RewrittenModule module;
  module.cubin.resize(bytes, 'x');
  return module;
}

// Whether the module was there.
bool is_found(MemoryCache& cache, const std::string& key, size_t bytes = 1000) {
  return cache.find_or_make(key, [&] { return module_of(bytes); }).second;
}

TEST(MemoryCache, FindsWhatWasMade) {
  MemoryCache cache;
  EXPECT_FALSE(is_found(cache, "a"));
  EXPECT_FALSE(is_found(cache, "b"));
  EXPECT_TRUE(is_found(cache, "a"));
}

TEST(MemoryCache, AFailedBuildIsNotKept) {
  MemoryCache cache;
  const auto fail = []() -> RewrittenModule { throw std::runtime_error("no"); };
  EXPECT_THROW(cache.find_or_make("a", fail), std::runtime_error);
  EXPECT_FALSE(is_found(cache, "a"));
}

// Whoever catches an error adds to it where it was, while other threads read theirs.
TEST(MemoryCache, EachThreadGetsAnErrorOfItsOwn) {
  constexpr int kThreads = 3;
  MemoryCache cache;
  std::atomic<int> arrived{0};
  const auto fail = [&]() -> RewrittenModule {
    while (arrived != kThreads) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others wait for this one by now
    throw Error(ErrorCode::Link, "no");
  };
  std::barrier all_have_added(kThreads);
  std::array<std::string, kThreads> found;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ++arrived;
        try {
          cache.find_or_make("a", fail);
        } catch (Error& error) {
          error.at(std::to_string(i));
          all_have_added.arrive_and_wait();
          found[i] = error.what();
        }
      });
    }
  }
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(found[i], std::to_string(i) + ": no");
}

TEST(MemoryCache, AllThreadsLearnThatMemoryRanOut) {
  MemoryCache cache;
  std::atomic<bool> is_waiting{false};
  std::jthread maker([&] {
    const auto fail = [&]() -> RewrittenModule {
      while (!is_waiting) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw std::bad_alloc();
    };
    EXPECT_THROW(cache.find_or_make("a", fail), std::bad_alloc);
  });
  is_waiting = true;
  EXPECT_THROW(cache.find_or_make("a", []() -> RewrittenModule { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(MemoryCache, ForgetsWhatWasAskedForLongestAgo) {
  MemoryCache cache(3500);
  for (const char* const key : {"a", "b", "c", "a"}) (void)is_found(cache, key);
  EXPECT_FALSE(is_found(cache, "d"));
  for (const char* const key : {"a", "c", "d"}) EXPECT_TRUE(is_found(cache, key)) << key;
  EXPECT_FALSE(is_found(cache, "b"));
}

TEST(MemoryCache, KeepsOneModuleHoweverLargeItIs) {
  MemoryCache cache(3500);
  (void)is_found(cache, "a");
  EXPECT_FALSE(is_found(cache, "large", 10'000));
  EXPECT_TRUE(is_found(cache, "large"));
  EXPECT_FALSE(is_found(cache, "a"));
}

TEST(MemoryCache, StaysSmallInAProgramThatLoadsWithoutEnd) {
  MemoryCache cache(3500);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(is_found(cache, std::to_string(i)));
  int kept = 0;
  for (int i = 990; i < 1000; ++i) kept += is_found(cache, std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(0, kept) << "each of these ten is forgotten before it is asked for again";
  EXPECT_TRUE(is_found(cache, "999"));
}

}  // namespace
}  // namespace klap::jit
