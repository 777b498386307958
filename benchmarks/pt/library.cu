// CUB's partition; see library.h.
#define CUB_DISABLE_CDP  // the programs call it from the host only
#include <cub/device/device_partition.cuh>

#include "library.h"

namespace {

struct Below {
  int limit;
  __device__ bool operator()(int value) const { return value < limit; }
};

}  // namespace

cudaError_t library_partition(void* memory, size_t& bytes, const int* input, int elements, int limit,
                              int* output, int* size) {
  return cub::DevicePartition::If(memory, bytes, input, output, size, elements, Below{limit});
}
