// CUB's partition, in a unit of its own because CUB takes long to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// Writes the elements below `limit` to the front of `output`, the others to its end, last one first, and the
// number of the former to `size`. With no `memory`, only says how many bytes of it are needed.
cudaError_t library_partition(void* memory, size_t& bytes, const int* input, int elements, int limit,
                              int* output, int* size);
