// The calls by which a program links code, as far as the links of program_links.h need to know them: those of
// the driver (cuLink*), those of nvJitLink, the toolkit's own linker, and of NVRTC, whose code they link.
//
// They are told here after their success; the end of a link before it, since its handle may be another's as
// soon as it is destroyed.
#pragma once

#include <cuda.h>
#include <nvJitLink.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/load/load.h"

namespace klap::runtime {

// Options are those of the call.
void link_created(CUlinkState link, const JitOptions& options);
void link_data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                     const JitOptions& options);
void link_file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options);
void link_completed(CUlinkState link, const void* image, size_t bytes);
void link_about_to_end(CUlinkState link);

void link_created(nvJitLinkHandle link, uint32_t count, const char* const* options);
void link_data_added(nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes,
                     const char* name);
void link_file_added(nvJitLinkHandle link, nvJitLinkInputType type, const char* path);
void link_completed(nvJitLinkHandle link, const void* cubin);
void link_about_to_end(nvJitLinkHandle link);

// NVRTC handed out machine code. `ptx` asks it for the PTX of the same program.
void code_compiled(const void* cubin, const std::function<std::string()>& ptx);

}  // namespace klap::runtime
