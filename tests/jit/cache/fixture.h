// A cache in a temporary folder, modules that cost nothing to build, and processes to try it from.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

#include "jit/cache/disk_cache.h"

namespace klap::jit {

// The exit code of a child process, besides success (0) and failure (1), if the machine does not allow the
// test.
constexpr int kCannotTest = 77;

class Cache : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::filesystem::path folder() const { return base_ / "cache"; }
  [[nodiscard]] std::filesystem::path entry(const CacheKey& key) const { return folder() / entry_name(key); }
  // Finds or builds module_for(key) in a new DiskCache, as another process would, and checks the module.
  CacheUse use(const CacheKey& key, uint64_t max_bytes = uint64_t{1} << 20);
  [[nodiscard]] size_t files_in_folder() const;

  std::filesystem::path base_;
  int builds_ = 0;
};

CacheKey key_for(const std::string& name);
// Different for each key, with something in every field that is kept.
RewrittenModule module_for(const CacheKey& key, size_t cubin_bytes = 200);
// True if all kept data of both are equal.
bool same(const RewrittenModule& a, const RewrittenModule& b);

// Runs `body` in a child process, whose exit code is its result.
pid_t start_process(const std::function<int()>& body);
int exit_code(pid_t process);  // 128 + N when signal N ended it
inline int in_process(const std::function<int()>& body) { return exit_code(start_process(body)); }

}  // namespace klap::jit
