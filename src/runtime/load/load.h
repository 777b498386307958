// Load redirection: an image with device launches is replaced by one that holds the same kernels and
// variables and the variants beside them. If anything goes wrong on the way, the program's own image is
// loaded instead, with one line that says why.
#pragma once

#include <cuda.h>

#include <optional>
#include <span>

namespace klap::runtime {

struct JitOptions {
  CUjit_option* names = nullptr;
  void** values = nullptr;
  unsigned count = 0;
};

struct LibraryOptions {
  CUlibraryOption* names = nullptr;
  void** values = nullptr;
  unsigned count = 0;
};

// Each returns the result of loading the rewritten image through the kind of call the program used. It
// returns nothing when the program's call is to be made as it is. `load_path` is that call's name.
std::optional<CUresult> load_module(const char* load_path, CUmodule* module, const void* image,
                                    const JitOptions& options);
std::optional<CUresult> load_module_file(const char* load_path, CUmodule* module, const char* file);
std::optional<CUresult> load_library(const char* load_path, CUlibrary* library, const void* image,
                                     const JitOptions& options, const LibraryOptions& library_options);
std::optional<CUresult> load_library_file(const char* load_path, CUlibrary* library, const char* file,
                                          const JitOptions& options, const LibraryOptions& library_options);

}  // namespace klap::runtime
