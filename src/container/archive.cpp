#include "container/archive.h"

#include <charconv>

#include "container/bytes.h"

namespace klap::container {
namespace {

constexpr std::string_view kMagic = "!<arch>\n";
constexpr size_t kHeader = 60, kNameBytes = 16, kSizeOffset = 48, kSizeBytes = 10;

std::string_view trimmed(std::string_view field) { return field.substr(0, field.find_last_not_of(' ') + 1); }

bool is_table(std::string_view name) {
  return name == "/" || name == "//" || name == "/SYM64/" || name.starts_with("__.SYMDEF");
}

}  // namespace

bool is_archive(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::vector<ArchiveMember> archive_members(std::string_view bytes, const std::string& name) {
  std::vector<ArchiveMember> out;
  size_t at = kMagic.size();
  while (at + kHeader <= bytes.size()) {
    const std::string_view header = bytes.substr(at, kHeader);
    const std::string_view digits = trimmed(header.substr(kSizeOffset, kSizeBytes));
    size_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    at += kHeader;
    if (error != std::errc() || end != digits.data() + digits.size() || size > bytes.size() - at) {
      damaged(name, "a member's size is wrong");
    }
    std::string_view member = trimmed(header.substr(0, kNameBytes));
    if (!is_table(member)) {
      if (member.ends_with('/')) member.remove_suffix(1);
      out.push_back({std::string(member), bytes.substr(at, size)});
    }
    at += size + size % 2;
  }
  return out;
}

}  // namespace klap::container
