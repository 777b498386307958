// CUB's stream compaction; see library.h.
#define CUB_DISABLE_CDP  // the programs call it from the host only
#include <cub/device/device_select.cuh>

#include "library.h"

namespace {

struct Below {
  int limit;
  __device__ bool operator()(int value) const { return value < limit; }
};

}  // namespace

cudaError_t library_compact(void* memory, size_t& bytes, int* data, int elements, int limit, int* size) {
  return cub::DeviceSelect::If(memory, bytes, data, size, elements, Below{limit});
}
