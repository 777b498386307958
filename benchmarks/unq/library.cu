// CUB's unique; see library.h.
#define CUB_DISABLE_CDP  // the programs call it from the host only
#include <cub/device/device_select.cuh>

#include "library.h"

cudaError_t library_unique(void* memory, size_t& bytes, const int* input, int elements, int* output,
                           int* size) {
  return cub::DeviceSelect::Unique(memory, bytes, input, output, size, elements);
}
