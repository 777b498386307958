// NVRTC and nvJitLink, opened with dlopen when they are first needed.
//
// KLAP_NVRTC and KLAP_NVJITLINK name other files; support/toolkit_library.h says where else they are looked
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/data/linker.h"

namespace klap::jit {

// Compiles CUDA C++ to PTX. `headers` are (name, text) pairs for #include. Throws Error(Toolchain) with the
// compiler's log.
std::string compile_to_ptx(std::string_view source, const std::string& name,
                           const std::vector<std::string>& options,
                           const std::vector<std::pair<std::string, std::string>>& headers);

// Links device code to one cubin. Throws Error(Link) with nvJitLink's log, Error(Unsupported) if it refuses
// an option, Error(Toolchain) if it cannot be opened. nvJitLink does not report duplicate definitions (it
// prints a line and succeeds): callers must not pass any.
std::string link_to_cubin(const std::vector<LinkInput>& inputs, const std::vector<std::string>& options);

// Compiles code for link-time optimisation (LTO-IR) together to PTX. `options` are nvJitLink's, with -arch.
// Throws as link_to_cubin() does.
std::string lower_to_ptx(const std::vector<LinkInput>& inputs, std::vector<std::string> options);

// Why nvJitLink cannot be opened; empty if it can, and then it is.
std::string nvjitlink_problem();

// libcudadevrt.a of the toolkit that nvJitLink belongs to; empty when there is none.
std::string find_device_runtime_archive();

// "13.0" for NVRTC and nvJitLink, for cache keys. Throws Error(Toolchain).
std::string nvrtc_version();
std::string nvjitlink_version();

// One of the two libraries as a file, to tell later whether it is still the same.
struct ToolFile {
  std::string library;  // "nvrtc" or "nvJitLink"
  std::string version, path;
  uint64_t bytes = 0;
  int64_t modified = 0;  // nanoseconds since the epoch
};

// The files of NVRTC and nvJitLink, as far as this process has opened them.
std::vector<ToolFile> opened_toolchain();

// Whether a library that would be opened now is known to be another one than `before`. Only looks at files:
// neither library is opened, and one that cannot be found is no difference, since what it once compiled is
// still good.
bool toolchain_changed(const std::vector<ToolFile>& before);

// How often the two libraries were asked to do something in this process.
struct ToolchainCalls {
  unsigned long nvrtc = 0, nvjitlink = 0;
};
ToolchainCalls toolchain_calls();

}  // namespace klap::jit
