// CUB's unique, in a unit of its own because CUB takes long to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// Writes the elements that differ from the one before to `output` and their number to `size`. With no
// `memory`, only says how many bytes of it are needed.
cudaError_t library_unique(void* memory, size_t& bytes, const int* input, int elements, int* output,
                           int* size);
