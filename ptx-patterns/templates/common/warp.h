// Operations that the converged lanes of a warp do together.
#ifndef KLAP_WARP_H
#define KLAP_WARP_H

// The lanes of the warp that are here together. In some kernels it is made to be all 32 or this lane alone,
// by the register's name (transform/text/lanes_apart.h).
static __device__ __forceinline__ unsigned int lanes_together() {
  unsigned int lanes;
  asm volatile(
      "{\n\t.reg .b32 %%lanes_together;\n\tactivemask.b32 %%lanes_together;\n\t"
      "mov.b32 %0, %%lanes_together;\n\t}"
      : "=r"(lanes));
  return lanes;
}

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
