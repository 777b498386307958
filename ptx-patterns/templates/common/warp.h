// Operations that the converged lanes of a warp do together.
#ifndef KLAP_WARP_H
#define KLAP_WARP_H

// Sum of `value` over this lane and the active lanes below it, by pointer jumping over `mask`.
static __device__ __forceinline__ unsigned int inclusive_sum(unsigned int value, unsigned int mask,
                                                             unsigned int lane) {
  constexpr unsigned int kNone = 32;
  const unsigned int below = mask & ((1u << lane) - 1u);
  unsigned int previous = below != 0 ? 31u - __clz(below) : kNone;
#pragma unroll
  for (int step = 0; step < 5; ++step) {
    const unsigned int source = previous == kNone ? lane : previous;
    const unsigned int add = __shfl_sync(mask, value, source);
    const unsigned int next = __shfl_sync(mask, previous, source);
    if (previous != kNone) {
      value += add;
      previous = next;
    }
  }
  return value;
}

#endif
