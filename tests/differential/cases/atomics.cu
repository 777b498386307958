// Children of different threads meet in shared results, by every atomic operation whose order does not
// matter.
#include "case.h"

constexpr unsigned kThreads = 96;
constexpr unsigned kChildThreads = 64;
KLAP_SHARED static constexpr unsigned mix(unsigned t, unsigned i) {
  return (t * 2654435761U) ^ (i * 40503U + (t << 7));
}

#ifdef __CUDACC__

__global__ void gather(unsigned* results, unsigned long long* wide, unsigned t) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, value = mix(t, i);
  atomicAdd(results + 0, value);
  atomicMin(results + 1, value);
  atomicMax(reinterpret_cast<int*>(results) + 2, static_cast<int>(value));
  atomicOr(results + 3, value & 0x0f0f0fU << (t % 8));
  atomicAnd(results + 4, ~(1U << (value % 13)));
  atomicXor(results + 5, value);
  // The largest value of all, by compare-and-swap.
  unsigned seen = *const_cast<volatile unsigned*>(results + 6);
  while (seen < value) {
    const unsigned before = atomicCAS(results + 6, seen, value);
    if (before == seen) break;
    seen = before;
  }
  atomicAdd(wide, static_cast<unsigned long long>(value) << 20);
}

extern "C" __global__ void atomics_parent(unsigned* results, unsigned long long* wide) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  gather<<<2, 32>>>(results, wide, t);
}

#else

KLAP_CASE(atomics, "an atomic update of a child is lost") {
  const std::vector<unsigned> before = {0, ~0U, 0x80000000U, 0, ~0U, 0, 0};
  std::vector<unsigned> after = before;
  unsigned long long wide = 0;
  for (unsigned t = 0; t < kThreads; ++t) {
    for (unsigned i = 0; i < kChildThreads; ++i) {
      const unsigned value = mix(t, i);
      after[0] += value;
      after[1] = std::min(after[1], value);
      after[2] = static_cast<unsigned>(std::max(static_cast<int>(after[2]), static_cast<int>(value)));
      after[3] |= value & 0x0f0f0fU << (t % 8);
      after[4] &= ~(1U << (value % 13));
      after[5] ^= value;
      after[6] = std::max(after[6], value);
      wide += static_cast<unsigned long long>(value) << 20;
    }
  }
  const auto results = c.buffer("results", before, after);
  const auto sum =
      c.buffer("wide", std::vector<unsigned long long>{0}, std::vector<unsigned long long>{wide});
  c.launch("atomics_parent", {3, 1, 1}, {32, 1, 1}, c.address(results), c.address(sum));
}

#endif
