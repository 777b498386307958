#include "jit/cache/disk_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "analysis/facts/rejection.h"
#include "support/error.h"
#include "support/log.h"
#include "support/own_thread.h"

namespace klap::jit {
namespace {

// A site that did not link may be the fault of a passing condition, such as too little memory.
bool is_final(const RewrittenModule& module) {
  return std::ranges::none_of(module.remarks, [](const SiteRemark& remark) {
    return remark.reason == analysis::to_string(analysis::Reason::BuildFailed);
  });
}

// The entry's bytes. One that cannot be read, for lack of descriptors for example, need not be damaged.
std::optional<std::string> read_entry(const CacheFolder& folder, const std::string& name) {
  try {
    return folder.read(name);
  } catch (const Error& error) {
    log().info("cache entry not read: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace

std::string entry_name(const CacheKey& key) { return key.hash + ".klap"; }

RewrittenModule DiskCache::find_or_build(const CacheKey& key, const Request& request,
                                         const std::function<RewrittenModule()>& build) {
  const std::optional<CacheFolder> folder = open_folder();
  if (!folder) {
    RewrittenModule module = build();
    module.cache = CacheUse::Unusable;
    return module;
  }
  Lookup found = look_up(*folder, key, request);
  if (found.module) return std::move(*found.module);
  CacheLock lock(*folder, key.hash + ".lock");
  Lookup later = wait_for_builder(*folder, lock, key, request);
  if (later.module) return std::move(*later.module);
  RewrittenModule module = build();
  module.cache = found.use;
  if (is_final(module) && !process_ends()) store(*folder, key, request, module);
  return module;
}

std::optional<CacheFolder> DiskCache::open_folder() {
  try {
    return CacheFolder::open(options_.folder);
  } catch (const std::exception& error) {
    warn_once(error.what());
    return std::nullopt;
  }
}

DiskCache::Lookup DiskCache::look_up(const CacheFolder& folder, const CacheKey& key,
                                     const Request& request) const {
  const std::string name = entry_name(key);
  CacheEntry entry;
  try {
    const std::optional<std::string> bytes = read_entry(folder, name);
    if (!bytes) return {};
    entry = decode(*bytes);
    if (entry.key != key.text) throw Error(ErrorCode::Io, "holds another module than its name says");
  } catch (const std::exception& error) {
    log().info("cache entry {} removed: {}", (options_.folder / name).string(), error.what());
    folder.remove(name);
    return {std::nullopt, CacheUse::Damaged};
  }
  if (toolchain_changed(entry.tools) || entry.decisions != decisions(entry.module.remarks, request)) {
    return {std::nullopt, CacheUse::Outdated};
  }
  folder.touch(name);
  entry.module.cache = CacheUse::Hit;
  return {std::move(entry.module), CacheUse::Hit};
}

std::optional<RewrittenModule> DiskCache::find(const CacheKey& key, const Request& request) {
  const std::optional<CacheFolder> folder = open_folder();
  return folder ? look_up(*folder, key, request).module : std::nullopt;
}

// Returns with the lock, with the module that another process built, or, after a time, with neither.
DiskCache::Lookup DiskCache::wait_for_builder(const CacheFolder& folder, CacheLock& lock, const CacheKey& key,
                                              const Request& request) const {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  for (auto pause = 2ms;; pause = std::min(pause * 2, 16ms)) {
    const CacheLock::Result result = lock.try_take();
    if (result == CacheLock::Result::Impossible) return {};
    // Whoever had the lock before may just have put the entry into place.
    Lookup found = look_up(folder, key, request);
    if (found.module || result == CacheLock::Result::Taken) return found;
    if (std::chrono::steady_clock::now() >= deadline) {
      log().info("cache: another process has been building this module for {} s; building it here too",
                 std::chrono::duration<double>(options_.patience).count());
      return {};
    }
    stop_if_process_ends();
    std::this_thread::sleep_for(pause);
  }
}

void DiskCache::store(const CacheFolder& folder, const CacheKey& key, const Request& request,
                      const RewrittenModule& module) {
  try {
    // Where nothing was rewritten, no toolchain had a part in it.
    const std::vector<ToolFile> tools = module.cubin.empty() ? std::vector<ToolFile>{} : opened_toolchain();
    const std::string bytes =
        encode({key.text, request.sm, tools, decisions(module.remarks, request), module});
    if (bytes.size() > options_.max_bytes) {
      log().info("cache: a module of {} bytes is not kept, KLAP_CACHE_MAX_SIZE is {}", bytes.size(),
                 options_.max_bytes);
      return;
    }
    folder.write(entry_name(key), bytes);
    folder.trim(options_.max_bytes);
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

void DiskCache::warn_once(const std::string& what) {
  if (!warned_.exchange(true)) log().warn("modules are not kept in the cache: {}", what);
}

}  // namespace klap::jit
