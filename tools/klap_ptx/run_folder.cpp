#include "klap_ptx/run_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "support/error.h"

namespace klap::tool {

RunFolder::RunFolder() {
  std::error_code ignored;
  const std::filesystem::path place = std::filesystem::temp_directory_path(ignored);
  std::string name = place / "klap-XXXXXX";
  if (place.empty() || mkdtemp(name.data()) == nullptr)
    throw Error(ErrorCode::Io, fmt::format("cannot make a folder in '{}'", place.string())).fix("set TMPDIR");
  path_ = name;
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace klap::tool
