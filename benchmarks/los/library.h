// The line of sight by CUB's scan, in a unit of its own because CUB takes long to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// Sets visible[i] to 1 or 0 for each point. With no `memory`, only says how many bytes of it are needed.
cudaError_t library_look(void* memory, size_t& bytes, const float* heights, int elements,
                         unsigned char* visible);
