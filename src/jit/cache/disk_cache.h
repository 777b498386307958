// Rewritten modules kept between processes, so that a second start compiles nothing.
//
// One file an entry, found by the hash of its key and believed only if the key in it is the same and all of
// it matches its checksum. A hit takes no lock. On a miss one process builds while the others wait for a
// bounded time; whoever has waited long enough builds too, which costs time and nothing else, since entries
// are put into place by one rename. Nothing that goes wrong here reaches the program: the module is then
// built as if there were no cache, and one warning a process says why.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "jit/cache/cache_entry.h"
#include "jit/cache/cache_folder.h"
#include "jit/cache/cache_key.h"
#include "jit/data/cache_use.h"
#include "jit/data/request.h"

namespace klap::jit {

struct DiskCacheOptions {
  std::filesystem::path folder;
  uint64_t max_bytes = uint64_t{1} << 30;
  std::chrono::milliseconds patience{10'000};  // how long to wait for another process that builds the same
};

class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options) : options_(std::move(options)) {}

  // The module from its entry, else from `build`, whose exceptions are passed on. Others are thrown only when
  // the process is ending.
  RewrittenModule find_or_build(const CacheKey& key, const Request& request,
                                const std::function<RewrittenModule()>& build);

  // The module from its entry; nothing if there is none that holds.
  std::optional<RewrittenModule> find(const CacheKey& key, const Request& request);

  [[nodiscard]] const DiskCacheOptions& options() const { return options_; }
  // Whether something kept a module from being kept; the warning has said what.
  [[nodiscard]] bool had_problem() const { return warned_.load(); }

 private:
  struct Lookup {
    std::optional<RewrittenModule> module;
    CacheUse use = CacheUse::Miss;
  };

  std::optional<CacheFolder> open_folder();
  Lookup look_up(const CacheFolder& folder, const CacheKey& key, const Request& request) const;
  Lookup wait_for_builder(const CacheFolder& folder, CacheLock& lock, const CacheKey& key,
                          const Request& request) const;
  void store(const CacheFolder& folder, const CacheKey& key, const Request& request,
             const RewrittenModule& module);
  void warn_once(const std::string& what);

  DiskCacheOptions options_;
  std::atomic<bool> warned_{false};
};

// The name of a key's entry in the folder.
std::string entry_name(const CacheKey& key);

}  // namespace klap::jit
