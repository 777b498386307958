#include "runtime/parents/guard_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "jit/cache/cache_folder.h"
#include "support/error.h"
#include "support/hash.h"

namespace klap::runtime {
namespace {

constexpr std::string_view kMagic("klapgrd\n", 8);
constexpr uint32_t kFormat = 2;
constexpr size_t kChecksumBytes = 16;
static_assert(std::is_trivially_copyable_v<GuardTimes>);

template <class Value>
void put(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& bytes, const std::string& text) {
  put(bytes, uint64_t{text.size()});
  bytes += text;
}

[[noreturn]] void damaged(const char* how) { throw Error(ErrorCode::Io, how); }

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class Value>
  Value get() {
    Value value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string get_text() { return std::string(take(get<uint64_t>())); }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size()) damaged("ends too early");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest_;
};

// Everything between the magic and the checksum, both verified.
std::string_view verified_body(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) damaged("is no profile");
  if (bytes.size() < kMagic.size() + kChecksumBytes) damaged("is too short");
  const std::string_view checked = bytes.substr(0, bytes.size() - kChecksumBytes);
  std::array<uint64_t, 2> checksum{};
  std::memcpy(checksum.data(), bytes.data() + checked.size(), kChecksumBytes);
  if (checksum != content_hash(checked)) damaged("has a wrong checksum");
  return checked.substr(kMagic.size());
}

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
  std::string bytes(kMagic);
  put(bytes, kFormat);
  put_text(bytes, profile.name);
  put(bytes, profile.written);
  put(bytes, uint64_t{profile.rows.size()});
  for (const auto& [launches, times] : profile.rows) {
    put_text(bytes, launches.first);
    put(bytes, launches.second);
    put(bytes, times);
  }
  put(bytes, content_hash(bytes));
  return bytes;
}

GuardProfile decode_profile(std::string_view bytes) {
  Reader body(verified_body(bytes));
  if (body.get<uint32_t>() != kFormat) damaged("has another format");
  GuardProfile profile;
  profile.name = body.get_text();
  profile.written = body.get<int64_t>();
  for (uint64_t left = body.get<uint64_t>(); left != 0; --left) {
    std::string parent = body.get_text();
    const auto launches = body.get<std::array<uint64_t, 2>>();
    profile.rows[{std::move(parent), launches}] = body.get<GuardTimes>();
  }
  if (!body.at_end()) damaged("has more in it than it should");
  return profile;
}

}  // namespace klap::runtime
