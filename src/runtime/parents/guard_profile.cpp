#include "runtime/parents/guard_profile.h"

#include <algorithm>

#include "jit/cache/cache_folder.h"
#include "support/checked_file.h"
#include "support/hash.h"

namespace klap::runtime {
namespace {

constexpr std::string_view kMagic("klapgrd\n", 8);
constexpr uint32_t kFormat = 2;

}  // namespace

void GuardProfile::drop_surplus_rows() {
  while (rows.size() > kMostRows) {
    rows.erase(std::ranges::min_element(rows, {}, [](const auto& row) { return row.second.spent_ms; }));
  }
}

std::string profile_file(std::string_view name) {
  return Hasher().add(name).hex() + std::string(jit::kProfileEnding);
}

std::string encode(const GuardProfile& profile) {
  CheckedWriter file(kMagic, kFormat);
  file.put_text(profile.name);
  file.put(profile.written);
  file.put(uint64_t{profile.rows.size()});
  for (const auto& [launches, times] : profile.rows) {
    file.put_text(launches.first);
    file.put(launches.second);
    file.put(times);
  }
  return file.finish();
}

GuardProfile decode_profile(std::string_view bytes) {
  CheckedReader file(bytes, kMagic, kFormat, "profile");
  GuardProfile profile;
  profile.name = file.get_text();
  profile.written = file.get<int64_t>();
  for (uint64_t left = file.get<uint64_t>(); left != 0; --left) {
    std::string parent = file.get_text();
    const auto launches = file.get<std::array<uint64_t, 2>>();
    profile.rows[{std::move(parent), launches}] = file.get<GuardTimes>();
  }
  file.finish();
  return profile;
}

}  // namespace klap::runtime
