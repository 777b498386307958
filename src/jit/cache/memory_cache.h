// Modules that were rewritten before in this process.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "jit/data/rewritten_module.h"

namespace klap::jit {

// A module that is being built by one thread is waited for by the others; a failed build is not kept.
class MemoryCache {
 public:
  using Entry = std::shared_ptr<const RewrittenModule>;

  static MemoryCache& instance() {
    static auto& cache = *new MemoryCache;  // leaked: threads may load code during exit
    return cache;
  }

  template <typename Make>
  std::pair<Entry, bool> find_or_make(const std::string& key, const Make& make) {
    std::promise<Entry> promise;
    std::shared_future<Entry> waiting;
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(key);
      if (found != entries_.end()) {
        waiting = found->second;
      } else {
        entries_[key] = promise.get_future().share();
      }
    }
    if (waiting.valid()) return {waiting.get(), true};
    try {
      Entry made = std::make_shared<const RewrittenModule>(make());
      promise.set_value(made);
      return {made, false};
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      entries_.erase(key);
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Entry>> entries_;
};

}  // namespace klap::jit
