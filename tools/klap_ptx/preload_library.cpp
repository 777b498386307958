#include "klap_ptx/preload_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace klap::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "libklap_jit.so";
// Both separate the files in LD_PRELOAD.
constexpr std::string_view kSeparators = ": ";

}  // namespace

std::string find_preload_library(const std::string& given) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> places = {given};
  if (given.empty()) {
    places.clear();
    for (const char* const folder : {"../lib", "../lib/" KLAP_MULTIARCH, "../lib64"})
      places.push_back((here / folder / kFile).lexically_normal().string());
  }
  std::error_code error;
  for (const std::string& place : places)
    if (fs::exists(place, error)) return fs::canonical(place).string();
  throw Error(ErrorCode::Io, fmt::format("there is no library at {}", fmt::join(places, ", ")))
      .fix(fmt::format("name {} with --library", kFile));
}

std::string preloaded_besides() {
  const char* const set = std::getenv("LD_PRELOAD");
  std::string_view rest = set != nullptr ? set : "";
  std::vector<std::string_view> files;
  while (!rest.empty()) {
    const std::string_view file = rest.substr(0, rest.find_first_of(kSeparators));
    rest.remove_prefix(std::min(rest.size(), file.size() + 1));
    if (!file.empty() && fs::path(file).filename() != kFile) files.push_back(file);
  }
  return fmt::format("{}", fmt::join(files, ":"));
}

std::string with_preloaded(const std::string& library) {
  if (library.find_first_of(kSeparators) != std::string::npos) {
    throw Error(ErrorCode::Config, "LD_PRELOAD cannot name a file with a blank or a colon in its path")
        .at(library)
        .fix("put the library into another folder");
  }
  const std::string others = preloaded_besides();
  return others.empty() ? library : library + ":" + others;
}

}  // namespace klap::tool
