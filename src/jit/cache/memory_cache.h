// Modules that were rewritten before in this process.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "jit/data/rewritten_module.h"
#include "support/error.h"

namespace klap::jit {

// A module that is being built by one thread is waited for by the others; a failed build is not kept. A
// program may make and load modules without end. So those that were asked for longest ago are forgotten where
// all together are too large.
class MemoryCache {
 public:
  using Entry = std::shared_ptr<const RewrittenModule>;
  static constexpr size_t kMostBytes = size_t{32} << 20;

  explicit MemoryCache(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  static MemoryCache& instance() {
    static auto& cache = *new MemoryCache;  // leaked: threads may load code during exit
    return cache;
  }

  template <typename Make>
  std::pair<Entry, bool> find_or_make(const std::string& key, const Make& make) {
    std::promise<Built> promise;
    std::shared_future<Built> waiting;
    {
      const std::lock_guard lock(mutex_);
      Kept& kept = entries_[key];
      kept.used = ++uses_;
      waiting = kept.module;
      if (!waiting.valid()) kept.module = promise.get_future().share();
    }
    if (waiting.valid()) return {module_of(waiting.get()), true};
    try {
      Entry made = std::make_shared<const RewrittenModule>(make());
      promise.set_value({made, std::nullopt});
      keep(key, key.size() + made->cubin.size());
      return {made, false};
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        entries_.erase(key);
      }
      // If there is no memory for a copy either, those who wait learn that nobody answers.
      promise.set_value({nullptr, failure()});
      throw;
    }
  }

 private:
  // A build leaves one of these. Each thread that waited throws an error of its own: whoever catches it adds
  // to it where it was, which other threads must not see.
  struct Built {
    Entry module;
    std::optional<Error> failure;  // memory had run out where there is neither
  };
  static Entry module_of(const Built& built) {
    if (built.module) return built.module;
    if (built.failure) throw Error(*built.failure);
    throw std::bad_alloc();
  }
  // The exception that is being handled.
  static std::optional<Error> failure() {
    try {
      throw;
    } catch (const Error& error) {
      return error;
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    } catch (const std::exception& error) {
      return Error(ErrorCode::Internal, error.what());
    }
  }

  struct Kept {
    std::shared_future<Built> module;
    size_t bytes = 0;   // 0 while it is being built
    uint64_t used = 0;  // when it was last asked for
  };

  // The module just built always stays.
  void keep(const std::string& key, size_t bytes) {
    const std::lock_guard lock(mutex_);
    entries_[key].bytes = bytes;
    bytes_ += bytes;
    while (bytes_ > most_bytes_) {
      auto oldest = entries_.end();
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const bool may_go = entry->second.bytes != 0 && entry->first != key;
        if (may_go && (oldest == entries_.end() || entry->second.used < oldest->second.used)) oldest = entry;
      }
      if (oldest == entries_.end()) return;
      bytes_ -= oldest->second.bytes;
      entries_.erase(oldest);
    }
  }

  const size_t most_bytes_;
  std::mutex mutex_;
  std::map<std::string, Kept> entries_;
  size_t bytes_ = 0;  // of all that are built
  uint64_t uses_ = 0;
};

}  // namespace klap::jit
