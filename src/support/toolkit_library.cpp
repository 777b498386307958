#include "support/toolkit_library.h"

#include <fmt/format.h>

#include <cstdlib>

namespace klap {
namespace {

std::vector<std::string> library_candidates(const std::string& stem, const char* variable) {
  if (const char* chosen = secure_getenv(variable); chosen != nullptr && *chosen != '\0') return {chosen};
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
      .fix(fmt::format("install the CUDA toolkit's library or name its file in {}", variable));
}

}  // namespace klap
