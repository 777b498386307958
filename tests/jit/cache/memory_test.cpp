// Modules in the memory of the process: found again, and not without end.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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
