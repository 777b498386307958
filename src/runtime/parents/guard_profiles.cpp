#include "runtime/parents/guard_profiles.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "runtime/process.h"
#include "support/error.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

// Launches that took less altogether do not matter to a process that has made a CUDA context.
constexpr double kLeastMs = 1;
// A profile that only finds its decisions confirmed is not written more often.
constexpr int64_t kSecondsBetween = 60;

// True if the forms were compared in this process or not at all yet, so that the next run goes on from there.
bool tells_more(const GuardTimes& found, const GuardTimes& earlier) {
  return found.checked != 0 || found.lost_ms > 0 || earlier.checked == 0;
}

}  // namespace

int64_t seconds_now() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

GuardProfiles& GuardProfiles::instance() {
  // Leaked on purpose: it is used by exit handlers.
  static auto* const profiles = [] {
    const settings::Config& asked = config();
    const bool are_kept = asked.guard == settings::GuardMode::On && !asked.cache_disabled;
    return new GuardProfiles(are_kept ? asked.cache_dir : std::filesystem::path(), asked.cache_max_bytes);
  }();
  return *profiles;
}

std::optional<jit::CacheFolder> GuardProfiles::open_folder(const char* consequence) const {
  try {
    return jit::CacheFolder::open(folder_);
  } catch (const std::exception& error) {
    log().info("{}: {}", consequence, error.what());
    return std::nullopt;
  }
}

GuardProfile GuardProfiles::read(const jit::CacheFolder& folder, const std::string& name,
                                 spdlog::level::level_enum level) const {
  GuardProfile none;
  none.name = name;
  const std::string file = profile_file(name);
  try {
    const std::optional<std::string> bytes = folder.read(file);
    if (!bytes) return none;
    GuardProfile profile = decode_profile(*bytes);
    if (profile.name != name) throw Error(ErrorCode::Io, "is another profile than its name says");
    return profile;
  } catch (const std::exception& error) {
    log().log(level, "profile {} is not used: {}", (folder_ / file).string(), error.what());
    return none;
  }
}

// A profile is looked for once.
GuardProfiles::Known& GuardProfiles::known(const std::string& name) {
  const auto [entry, is_new] = known_.try_emplace(name);
  if (!is_new) return entry->second;
  entry->second.earlier.name = name;
  if (const auto folder = open_folder("profiles of earlier runs are not read"))
    entry->second.earlier = read(*folder, name, spdlog::level::info);
  return entry->second;
}

GuardTimes GuardProfiles::earlier(const std::string& profile, const ProfiledLaunches& launches) {
  const std::lock_guard lock(mutex_);
  const GuardProfile& of = known(profile).earlier;
  const auto row = of.rows.find(launches);
  return row == of.rows.end() ? GuardTimes() : row->second;
}

void GuardProfiles::found(const std::string& profile, const ProfiledLaunches& launches,
                          const GuardTimes& times, bool replaces) {
  const std::lock_guard lock(mutex_);
  std::map<ProfiledLaunches, Found>& all = known(profile).found;
  const auto row = all.find(launches);
  if (row == all.end()) {
    if (all.size() < GuardProfile::kMostRows) all[launches] = {times, replaces};
    return;
  }
  // These launches were seen before at another address, or until others took their place. It is one run.
  Found& so_far = row->second;
  so_far.times.add(times, replaces);
  so_far.times.runs = 1;
  so_far.replaces = so_far.replaces || replaces;
}

void GuardProfiles::write(int64_t now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) {
    double spent = 0;
    bool has_tried = false;
    for (const auto& [launches, found] : entry.second.found) {
      spent += found.times.spent_ms;
      has_tried = has_tried || !found.times.original.first.empty() || !found.times.original.later.empty();
    }
    return spent < kLeastMs && !has_tried;
  });
  if (known_.empty()) return;
  const auto folder = open_folder("profiles are not kept");
  if (!folder) return;
  for (const auto& [name, known] : known_) {
    try {
      write_one(*folder, name, known, now);
    } catch (const std::exception& error) {
      log().info("profile not kept: {}", error.what());
    }
  }
  known_.clear();
}

void GuardProfiles::write_one(const jit::CacheFolder& folder, const std::string& name, const Known& known,
                              int64_t now) const {
  // One that is broken was named before.
  GuardProfile profile = read(folder, name, spdlog::level::debug);
  const bool is_new = profile.rows.empty();
  bool is_worth_it = now - profile.written >= kSecondsBetween || now < profile.written;
  for (const auto& [launches, found] : known.found) {
    GuardTimes& row = profile.rows[launches];
    is_worth_it = is_worth_it || found.replaces || tells_more(found.times, row);
    row.add(found.times, found.replaces);
  }
  if (!is_worth_it) return;
  profile.written = now;
  profile.drop_surplus_rows();
  folder.write(profile_file(name), encode(profile));
  if (is_new) folder.trim(max_bytes_);
}

}  // namespace klap::runtime
