// Static libraries (ar archives): only as far as finding their members.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap::container {

struct ArchiveMember {
  std::string name;
  std::string_view bytes;
};

bool is_archive(std::string_view bytes);
// The members that are files, without the tables of symbols and long names. Throws Error(Container).
std::vector<ArchiveMember> archive_members(std::string_view bytes, const std::string& name);

}  // namespace klap::container
