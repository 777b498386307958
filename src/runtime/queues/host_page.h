// A page of host memory that kernels write to, and that can be read at exit, when the driver may be gone.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace klap::runtime {

struct HostPage {
  volatile uint64_t* words = nullptr;  // as the host sees them
  CUdeviceptr in_device = 0;           // as kernels see them
};

size_t host_page_bytes();

// Maps a page into the current CUDA context. It is a page of its own, because pinned memory may not be
// inherited across fork. The page stays until the process ends, or until it is given back.
CUresult map_host_page(HostPage& page);
// Gives back a page whose CUDA context has ended.
void unmap_host_page(void* page);

}  // namespace klap::runtime
