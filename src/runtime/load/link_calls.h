// The calls by which a program links code, as far as the links of program_links.h need to know them: those of
// the driver (cuLink*), those of nvJitLink, the toolkit's own linker, and of NVRTC, whose code they link.
//
// They are told here after their success; the end of a link before it, since its handle may be another's as
// soon as it is destroyed. Code that the linker refuses since it waits for its children is added here, before
// the program's own call (stand_ins.h).
#pragma once

#include <cuda.h>
#include <nvJitLink.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/load/load.h"

namespace klap::runtime {

// Options are those of the call.
void link_created(CUlinkState link, const JitOptions& options);
void link_data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                     const JitOptions& options);
void link_file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options);
// Each returns the result of the program's call; nothing if that is to be made as it is.
std::optional<CUresult> add_waiting_data(const char* entry_point, CUlinkState link, CUjitInputType type,
                                         const void* data, size_t bytes, const char* name,
                                         const JitOptions& options);
std::optional<CUresult> add_waiting_file(const char* entry_point, CUlinkState link, CUjitInputType type,
                                         const char* path, const JitOptions& options);
void link_completed(CUlinkState link, const void* image, size_t bytes);
void link_about_to_end(CUlinkState link);

void link_created(nvJitLinkHandle link, uint32_t count, const char* const* options);
void link_data_added(nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes,
                     const char* name);
void link_file_added(nvJitLinkHandle link, nvJitLinkInputType type, const char* path);
// The functions of the nvJitLink that the program calls: there may be several in a process.
struct NvJitLinkFunctions {
  std::function<nvJitLinkResult(nvJitLinkHandle* link, uint32_t count, const char** options)> create;
  std::function<nvJitLinkResult(nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes,
                                const char* name)>
      add_data;
  std::function<nvJitLinkResult(nvJitLinkHandle* link)> destroy;
};
std::optional<nvJitLinkResult> add_waiting_data(const char* entry_point, const NvJitLinkFunctions& functions,
                                                nvJitLinkHandle link, nvJitLinkInputType type,
                                                const void* data, size_t bytes, const char* name);
std::optional<nvJitLinkResult> add_waiting_file(const char* entry_point, const NvJitLinkFunctions& functions,
                                                nvJitLinkHandle link, nvJitLinkInputType type,
                                                const char* path);
void link_completed(nvJitLinkHandle link, const void* cubin);
void link_about_to_end(nvJitLinkHandle link);

// NVRTC handed out machine code. `ptx` asks it for the PTX of the same program.
void code_compiled(const void* cubin, const std::function<std::string()>& ptx);

}  // namespace klap::runtime
