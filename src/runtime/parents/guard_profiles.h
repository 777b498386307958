// The profiles of this process: read when a parent is first launched, written when the process exits.
//
// Nothing is written in between, so that no launch waits for a disk. A process that is killed writes nothing.
// Before a profile is written it is read again, since another process may have added to it meanwhile.
// Whatever goes wrong is one line in the log, and the process goes on as if there were no profile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "jit/cache/cache_folder.h"
#include "runtime/parents/guard_profile.h"
#include "support/log.h"

namespace klap::runtime {

class GuardProfiles {
 public:
  // `folder` is the cache's, empty if nothing is to be kept. `max_bytes` is the most that may be in it.
  GuardProfiles(std::filesystem::path folder, uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  // The profiles that the settings ask for.
  static GuardProfiles& instance();

  [[nodiscard]] bool are_kept() const { return !folder_.empty(); }
  // The times that earlier runs know of these launches.
  GuardTimes earlier(const std::string& profile, const ProfiledLaunches& launches);
  // Remembers what this process found.
  void found(const std::string& profile, const ProfiledLaunches& launches, const GuardTimes& times,
             bool replaces);
  // Adds it to the files. `now` in seconds since the epoch.
  void write(int64_t now);

 private:
  struct Found {
    GuardTimes times;
    bool replaces = false;
  };
  struct Known {
    GuardProfile earlier;
    std::map<ProfiledLaunches, Found> found;
  };
  Known& known(const std::string& name);
  [[nodiscard]] std::optional<jit::CacheFolder> open_folder(const char* consequence) const;
  [[nodiscard]] GuardProfile read(const jit::CacheFolder& folder, const std::string& name,
                                  spdlog::level::level_enum level) const;
  void write_one(const jit::CacheFolder& folder, const std::string& name, const Known& known,
                 int64_t now) const;

  const std::filesystem::path folder_;
  const uint64_t max_bytes_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;
};

// Now, in seconds since the epoch.
int64_t seconds_now();

}  // namespace klap::runtime
