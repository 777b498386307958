// Children whose blocks, or whose dynamic shared memory, are not the same for all launches of a site.
//
// A record then holds the child's block in the fourth word, behind its grid. A launch of many children as one
// grid gives all of them the largest block and the most shared memory that one of them asked for. The
// recording threads keep these maxima in the queue (KlapCounters). A block of a smaller child lets its
// surplus threads end.
//
// Constants: KLAP_BLOCKS_DIFFER if blocks do, with KLAP_CHILD_X, _Y, _Z for the extents that are the same for
// all launches; KLAP_SHARED_DIFFERS if dynamic shared memory does. If blocks are all the same, KLAP_CHILD_X,
// _Y, _Z are their extents.
#ifndef KLAP_SIZES_H
#define KLAP_SIZES_H

// All extents of a block that CUDA accepts in one word: at most 1,024, 1,024 and 64.
#define KLAP_EXTENT_BITS 11

static __device__ __forceinline__ unsigned int block_word(unsigned int x, unsigned int y, unsigned int z) {
  return x | y << KLAP_EXTENT_BITS | z << 2 * KLAP_EXTENT_BITS;
}

#ifdef KLAP_BLOCKS_DIFFER

static __device__ __forceinline__ uint3 block_of(unsigned int word) {
  constexpr unsigned int kMask = (1u << KLAP_EXTENT_BITS) - 1u;
  uint3 block = make_uint3(word & kMask, word >> KLAP_EXTENT_BITS & kMask, word >> 2 * KLAP_EXTENT_BITS);
#ifdef KLAP_CHILD_X
  block.x = KLAP_CHILD_X;
#endif
#ifdef KLAP_CHILD_Y
  block.y = KLAP_CHILD_Y;
#endif
#ifdef KLAP_CHILD_Z
  block.z = KLAP_CHILD_Z;
#endif
  return block;
}

// The place of a thread, which is not beyond the last one, in its block.
static __device__ __forceinline__ uint3 place_in(const uint3& block, unsigned int thread) {
#if KLAP_CHILD_Y == 1 && KLAP_CHILD_Z == 1
  return make_uint3(thread, 0, 0);
#else
  const unsigned int row = thread / block.x;
  return make_uint3(thread - row * block.x, row % block.y, row / block.y);
#endif
}

#endif

#endif
