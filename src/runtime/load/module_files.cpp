#include "runtime/load/module_files.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "container/first_names.h"
#include "runtime/load/stand_ins.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

// Damaged files are read in full, as nothing can be said of them.
bool may_launch(const std::filesystem::path& file, uint32_t sm) {
  std::error_code ec;
  const auto bytes = std::filesystem::file_size(file, ec);
  std::ifstream in(file, std::ios::binary);
  if (ec || !in) return true;
  const auto read = [&in](uint64_t offset, uint64_t count) {
    std::string part(count, '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(part.data(), static_cast<std::streamsize>(count));
    part.resize(static_cast<size_t>(in.gcount()));
    return part;
  };
  const auto launching = container::launch_words();
  std::vector<std::string_view> words(launching.begin(), launching.end());
  words.push_back(kStandInMark);
  try {
    return container::file_may_name({bytes, read}, sm, words);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::optional<std::string> read_module_file(const char* file, uint32_t sm) {
  if (!file || !may_launch(file, sm)) return std::nullopt;
  try {
    return read_file(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace klap::runtime
