// The sequence of virtual blocks that recorded children form, as the kernels that run them read it.
//
// The blocks of all children, one child after another, are numbered through; `prefix` holds each child's
// first number. The group that runs block n searches its child there once and splits the rest into the
// child's own coordinates.
#ifndef KLAP_SEQUENCE_H
#define KLAP_SEQUENCE_H

#include "common/queue.h"

// A sequence, or the part of one that a launch is to run. As a kernel's parameter it is laid out by the
// host's and the device's compilers alike: pointers and 64-bit words first.
struct KlapSequence {
  const unsigned char* records;
  const unsigned long long* prefix;
  unsigned long long first;  // block of the sequence that block 0 of the launch runs
  unsigned int count;        // records
#ifdef KLAP_ONCE
  const void* once;  // holds what is passed once for all records
#endif
};
#ifdef KLAP_ONCE
static_assert(sizeof(KlapSequence) == KLAP_SEQUENCE_ONCE + sizeof(void*), "another layout");
#endif

// Position in a child's grid. Rows of one-dimensional grids are shorter than 2^31 blocks.
#ifdef KLAP_GRID_1D
typedef unsigned int Linear;
#else
typedef unsigned long long Linear;
#endif

// A consumer that awaits its parent (await.h) has lived while that wrote. So has a fused kernel, which is the
// parent itself.
#if defined(KLAP_AWAIT_PARENT) || defined(KLAP_FUSED)
#define KLAP_WRITTEN_MEANWHILE
#endif

// True if no thread has written records since this kernel began.
#ifdef KLAP_WRITTEN_MEANWHILE
enum : bool { kReadOnly = false };
#else
enum : bool { kReadOnly = true };
#endif

// A child's first block. The non-coherent cache is for memory that is not written while the kernel lives.
static __device__ __forceinline__ unsigned long long first_block(const unsigned long long* prefix,
                                                                 unsigned int record) {
#ifdef KLAP_WRITTEN_MEANWHILE
  return prefix[record];
#else
  return __ldg(prefix + record);
#endif
}

// The last record whose first virtual block is not behind `block`: records of no blocks share their
// successor's prefix.
static __device__ __forceinline__ unsigned int find_record(const unsigned long long* prefix,
                                                           unsigned int records, unsigned long long block) {
  unsigned int low = 0, high = records;
  while (high - low > 1) {
    const unsigned int middle = low + (high - low) / 2;
    if (first_block(prefix, middle) <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Finds a record by all 32 threads of a warp together: one of 64 parts in each step, rather than one of two.
// Each step is an access of memory that the next one waits for.
static __device__ __forceinline__ unsigned int find_record_as_warp(const unsigned long long* prefix,
                                                                   unsigned int records,
                                                                   unsigned long long block) {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  unsigned int low = 0, high = records;
#pragma unroll 1
  while (low + 1 < high) {
    const unsigned int part = (high - low + 63) / 64;
    const unsigned int probe = low + lane * part, second = probe + 32 * part;
    // Both in flight at a time. Lane 0's first one is known not to be behind.
    const unsigned long long at_probe = probe < high ? first_block(prefix, probe) : ~0ull;
    const unsigned long long at_second = second < high ? first_block(prefix, second) : ~0ull;
    const unsigned int before = __popc(__ballot_sync(~0u, lane == 0 || at_probe <= block)) +
                                __popc(__ballot_sync(~0u, at_second <= block));
    low += (before - 1u) * part;
    if (high - low > part) high = low + part;
  }
  return low;
}

// The coordinates of block `linear` of a child's grid.
static __device__ __forceinline__ uint3 position_in(const uint4& grid, Linear linear) {
#ifdef KLAP_GRID_1D
  return make_uint3(linear, 0, 0);
#else
  const unsigned long long row = linear / grid.x;
  const unsigned int z = static_cast<unsigned int>(row / grid.y);
  return make_uint3(static_cast<unsigned int>(linear - row * grid.x),
                    static_cast<unsigned int>(row - static_cast<unsigned long long>(z) * grid.y), z);
#endif
}

#endif
