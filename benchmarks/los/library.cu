// The line of sight by CUB's scan; see library.h.
#define CUB_DISABLE_CDP  // the programs call it from the host only
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "library.h"
#include "slope.h"

namespace {

struct SlopeAt {
  const float* heights;
  __host__ __device__ float operator()(int i) const { return slope_to(heights[i], heights[0], i); }
};

struct Higher {
  __host__ __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Takes what the scan would store, the highest slope before a point, and stores what is asked for.
struct StoreVisible {
  SlopeAt slope_at;
  unsigned char* visible;
  __host__ __device__ void operator()(ptrdiff_t i, float highest) const {
    visible[i] = slope_at(static_cast<int>(i)) > highest ? 1 : 0;
  }
};

}  // namespace

cudaError_t library_look(void* memory, size_t& bytes, const float* heights, int elements,
                         unsigned char* visible) {
  const SlopeAt slope_at{heights};
  const auto slopes = thrust::make_transform_iterator(thrust::make_counting_iterator(0), slope_at);
  const auto store = thrust::make_tabulate_output_iterator(StoreVisible{slope_at, visible});
  return cub::DeviceScan::ExclusiveScan(memory, bytes, slopes, store, Higher{}, -INFINITY, elements);
}
