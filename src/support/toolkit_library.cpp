#include "support/toolkit_library.h"

#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace klap {
namespace {

std::string chosen_by(const char* variable) {
  const char* const chosen = secure_getenv(variable);
  return chosen != nullptr ? chosen : "";
}

std::vector<std::string> library_candidates(const std::string& stem, const char* variable) {
  if (std::string chosen = chosen_by(variable); !chosen.empty()) return {std::move(chosen)};
  std::vector<std::string> folders = toolkit_folders();
  folders.insert(folders.begin(), "");  // the loader's own search
  std::vector<std::string> out;
  for (const std::string& folder : folders) {
    for (const char* suffix : kToolkitSuffixes) out.push_back(fmt::format("{}lib{}{}", folder, stem, suffix));
  }
  return out;
}

}  // namespace

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> roots, out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = secure_getenv(variable);
    if (root != nullptr && *root != '\0') roots.emplace_back(root);
  }
  roots.emplace_back("/usr/local/cuda");
  for (const std::string& root : roots)
    for (const char* folder : {"/lib64/", "/extras/CUPTI/lib64/"}) out.push_back(root + folder);
  return out;
}

void* open_toolkit_library(const std::string& stem, const char* variable) {
  std::string first_problem;
  for (const std::string& name : library_candidates(stem, variable)) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* problem = dlerror();
    if (first_problem.empty() && problem != nullptr) first_problem = problem;
  }
  throw Error(ErrorCode::Toolchain, fmt::format("cannot open lib{}: {}", stem, first_problem))
      .fix(chosen_by(variable).empty()
               ? fmt::format("install the CUDA toolkit's library or name its file in {}", variable)
               : fmt::format("{} names this file; name another one, or unset it", variable));
}

std::string file_of_library(void* library) {
  const link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : "";
}

void open_beside(void* library, const std::string& name) {
  if (dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr) return;
  const std::filesystem::path file = file_of_library(library);
  std::error_code error;
  for (const auto& place : {file, std::filesystem::canonical(file, error)})
    if (place.has_parent_path() &&
        dlopen((place.parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr)
      return;
}

void throw_missing(void* library, const char* name) {
  throw Error(ErrorCode::Toolchain,
              fmt::format("{} is missing: this is another library, or an old one", name))
      .at(file_of_library(library));
}

}  // namespace klap
