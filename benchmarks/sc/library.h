// CUB's stream compaction, in a unit of its own because CUB takes long to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// Moves the elements below `limit` to the front of `data` and writes their number to `size`. With no
// `memory`, only says how many bytes of it are needed.
cudaError_t library_compact(void* memory, size_t& bytes, int* data, int elements, int limit, int* size);
