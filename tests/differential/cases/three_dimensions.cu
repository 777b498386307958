// Parents and children of three dimensions: every index and extent that the child sees is written down.
#include "case.h"

constexpr unsigned kParents = 2 * 3 * 2 * (4 * 2 * 3);
constexpr unsigned kChildThreads = 3 * 2 * 2 * (8 * 2 * 2);  // at the most
KLAP_SHARED static constexpr unsigned extent_x(unsigned t) { return t % 3 + 1; }
KLAP_SHARED static constexpr unsigned extent_y(unsigned t) { return t % 2 + 1; }
KLAP_SHARED static constexpr unsigned extent_z(unsigned t) { return t / 2 % 2 + 1; }
KLAP_SHARED static constexpr unsigned pack(unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                                           unsigned tz) {
  return ((((bz * 8 + by) * 8 + bx) * 8 + tz) * 8 + ty) * 8 + tx + 1;
}

#ifdef __CUDACC__

__global__ void write_place(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] =
      pack(blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}

extern "C" __global__ void parent_3d(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned t = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  write_place<<<dim3(extent_x(t), extent_y(t), extent_z(t)), dim3(8, 2, 2)>>>(out + t * kChildThreads);
}

#else

KLAP_CASE(three_dimensions, "a child sees a wrong blockIdx, threadIdx, gridDim or blockDim") {
  std::vector<unsigned> before(kParents * kChildThreads, 0), after = before;
  for (unsigned t = 0; t < kParents; ++t) {
    unsigned* out = &after[t * kChildThreads];
    for (unsigned bz = 0; bz < extent_z(t); ++bz)
      for (unsigned by = 0; by < extent_y(t); ++by)
        for (unsigned bx = 0; bx < extent_x(t); ++bx)
          for (unsigned tz = 0; tz < 2; ++tz)
            for (unsigned ty = 0; ty < 2; ++ty)
              for (unsigned tx = 0; tx < 8; ++tx) *out++ = pack(bx, by, bz, tx, ty, tz);
  }
  const auto out = c.buffer("out", before, after);
  c.launch("parent_3d", {2, 3, 2}, {4, 2, 3}, c.address(out));
  c.rewritten("parent_3d");
  c.children_never_meet();
}

#endif
