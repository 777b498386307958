// The consumer: one kernel that runs every recorded child, enqueued directly after the parent in the same
// stream.
//
// It is launched with as many blocks as fit on the GPU. All recorded children form one sequence of virtual
// blocks; a group of KLAP_CHILD_THREADS threads takes an equal contiguous share of it, searches the record of
// its first block once and then steps. (Smaller shares, taken one after another if blocks' times differ, cost
// more than they gain: thousands of groups ask for them at one place.) Where every child has so many blocks
// that nothing is searched, the blocks are dealt in turn instead. Neighbours often have alike much to do, as
// long lists of a graph do, and then no group gets several long ones. Children of 2^16 blocks or more follow,
// each spread over all groups.
//
// The call of __klap_child_body is a marker: the child's own code is spliced in there. Its parameters are
// read from the record, and its special registers are taken from the marker's arguments.
//
// Several groups share a physical block (KLAP_PACK) if children are small. If the threads of a child work
// together, they must also be together when one of its blocks ends and the next begins. It may be a warp that
// stays together: then warp operations meet those of the same block and see all its lanes. Or it is the whole
// block: then no thread writes to shared memory that others still read, and every barrier is one of the same
// block. All threads of a group compute alike which block is next. (exits.h handles threads that may exit
// before others meet.) Children's blocks may differ if their threads do not meet or share memory. Then not
// blocks but their warps are numbered and shared out. A group of 32 threads runs each warp; threads that the
// last warp of a block does not have are idle.
//
// Constants: those of sizes.h; KLAP_PACK; KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES; KLAP_MIN_BLOCKS, the min
// blocks per SM, unless that is left open; those of record_grid.h; KLAP_GRID_1D when every child's grid has
// one row and one layer; KLAP_SYNC_WARP when the child's block is a multiple of a warp whose lanes belong
// together, KLAP_SYNC_BLOCK when the whole block does (KLAP_PACK is then 1); those of exits.h, await.h,
// consumer_grid.h and consumer_end.h; those of range_parts.h if children run as parts of their ranges.
#include "aggregate/consumer_end.h"
#ifdef KLAP_PART_ELEMENTS
#include "aggregate/range_parts.h"
#endif
#include "common/await.h"
#include "common/child.h"
#include "common/exits.h"
#include "common/queue.h"
#include "common/record_grid.h"
#include "common/sequence.h"
#include "common/sizes.h"

#ifdef KLAP_BLOCKS_DIFFER
#define KLAP_CHILD_THREADS 32
typedef unsigned long long Place;  // of a warp among those of a child
#else
#define KLAP_CHILD_THREADS (KLAP_CHILD_X * KLAP_CHILD_Y * KLAP_CHILD_Z)
typedef Linear Place;
#endif

// The number of virtual blocks, or of their warps, that a child has.
static __device__ __forceinline__ Place size_of(const uint4& grid) {
  const Place blocks = static_cast<Place>(grid.x) * grid.y * grid.z;
#ifdef KLAP_BLOCKS_DIFFER
  const uint3 block = block_of(grid.w);
  return blocks * ((block.x * block.y * block.z + 31u) / 32u);
#else
  return blocks;
#endif
}

#ifdef KLAP_BLOCKS_DIFFER
// Dividing 64 bits takes long, and few children need it.
static __device__ __forceinline__ Place quotient(Place dividend, unsigned int divisor) {
  if (dividend >> 32 == 0) return static_cast<unsigned int>(dividend) / divisor;
  return dividend / divisor;
}
#endif

#if defined(KLAP_GRID_X) && defined(KLAP_GRID_Y) && defined(KLAP_GRID_Z) && !defined(KLAP_BLOCKS_DIFFER)
#if KLAP_GRID_X * KLAP_GRID_Y * KLAP_GRID_Z > 0 && \
    KLAP_GRID_X * KLAP_GRID_Y * KLAP_GRID_Z < KLAP_BIG_CHILD_BLOCKS
// Every child has so many blocks, so there is nothing to search.
#define KLAP_BLOCKS_EACH (KLAP_GRID_X * KLAP_GRID_Y * KLAP_GRID_Z)
#endif
#endif

#ifndef KLAP_BLOCKS_EACH
// The record of block `block`, for all threads of a group.
static __device__ __forceinline__ unsigned int record_of(const KlapQueue* queue, unsigned int records,
                                                         unsigned long long block) {
#if KLAP_CHILD_THREADS % 32 == 0
  return find_record_as_warp(queue->prefix, records, block);
#else
  return find_record(queue->prefix, records, block);
#endif
}

// The first block of the record behind this one.
static __device__ __forceinline__ unsigned long long end_of(const KlapQueue* queue, unsigned int record) {
  const unsigned long long packed = queue->packed;
  if (record + 1 < (static_cast<unsigned int>(packed) & KLAP_MAX_RECORDS))
    return first_block(queue->prefix, record + 1);
  return packed >> KLAP_INDEX_BITS;
}
#endif

static __device__ __forceinline__ void end_virtual_block() {
#if defined(KLAP_SYNC_BLOCK)
  end_child_block();
#elif defined(KLAP_SYNC_WARP)
  __syncwarp();
#endif
}

// How many of them a block of the consumer runs at a time. Blocks of a parent have room for what they have.
#if defined(KLAP_FUSED) && KLAP_PACK != 1
#define KLAP_OWN_PACK (threads_of_block() / KLAP_CHILD_THREADS)
#else
#define KLAP_OWN_PACK KLAP_PACK
#endif

static __device__ __forceinline__ unsigned int working(KLAP_GRID_PARAMETER const KlapCounted& counted) {
  return working_blocks(KLAP_GRID_ARGUMENT counted,
                        ((counted.packed >> KLAP_INDEX_BITS) + KLAP_OWN_PACK - 1) / KLAP_OWN_PACK);
}

#ifdef KLAP_MIN_BLOCKS
#define KLAP_BOUNDS __launch_bounds__(KLAP_CHILD_THREADS* KLAP_PACK, KLAP_MIN_BLOCKS)
#else
#define KLAP_BOUNDS __launch_bounds__(KLAP_CHILD_THREADS* KLAP_PACK)
#endif

// The queue's fields are read where they are needed: keeping them in registers across the child's body would
// cost more, in occupancy, than the cache hits they save.
#ifdef KLAP_FUSED
extern "C" __device__ void __klap_consumer(KlapQueue* queue, unsigned int own, unsigned int all) {
  const ConsumerGrid consumer = {own, all};
#else
extern "C" __global__ void KLAP_BOUNDS __klap_consumer(KlapQueue* queue) {
#endif
  await_parent();
  const KlapCounted counted = counted_in(queue);
  begin(KLAP_GRID_ARGUMENT queue, counted);
  if (KLAP_CONSUMER_BLOCK >= working(KLAP_GRID_ARGUMENT counted)) return;
#ifdef KLAP_FUSED
  if (KLAP_CONSUMER_THREAD >= KLAP_OWN_PACK * KLAP_CHILD_THREADS) KLAP_LEAVE_THREAD_OUT;
#endif
  const unsigned int groups = KLAP_CONSUMER_BLOCKS * KLAP_OWN_PACK;
#if KLAP_PACK == 1  // said in this way, the compiler sees that a whole block decides alike
  const unsigned int thread = KLAP_CONSUMER_THREAD;
  const unsigned int mine = KLAP_CONSUMER_BLOCK;
#else
  const unsigned int thread = KLAP_CONSUMER_THREAD % KLAP_CHILD_THREADS;
  const unsigned int mine = KLAP_CONSUMER_BLOCK * KLAP_OWN_PACK + KLAP_CONSUMER_THREAD / KLAP_CHILD_THREADS;
#endif

#ifdef KLAP_BLOCKS_EACH
  // The blocks are dealt in turn.
  unsigned long long block = mine;
  const unsigned long long blocks = counted.packed >> KLAP_INDEX_BITS;
#else
  unsigned long long block, left;  // the rest of this group's share
  unsigned int record = 0;         // the record that `block` belongs to, or one before it
  {
    const unsigned long long packed = counted.packed;
    const unsigned long long blocks = packed >> KLAP_INDEX_BITS;
    const unsigned long long share = blocks / groups, rest = blocks % groups;
    block = mine * share + (mine < rest ? mine : rest);
    left = share + (mine < rest ? 1u : 0u);
    if (left != 0) record = record_of(queue, static_cast<unsigned int>(packed) & KLAP_MAX_RECORDS, block);
  }
#endif
  unsigned int big_done = 0;

#pragma unroll 1
  for (;;) {
    // One stretch: `count` virtual blocks of one child, from `linear` on, `step` apart.
    const unsigned char* current = queue->records;
    Place linear, count;
    unsigned int step = 1;
#ifdef KLAP_BLOCKS_EACH
    if (block < blocks) {
      const unsigned int record = static_cast<unsigned int>(block / KLAP_BLOCKS_EACH);
      current += static_cast<unsigned long long>(record) * KLAP_RECORD_BYTES;
      linear = static_cast<Place>(block - static_cast<unsigned long long>(record) * KLAP_BLOCKS_EACH);
      count = 1;
      block += groups;
#else
    if (left != 0) {
      const unsigned long long begin = first_block(queue->prefix, record), end = end_of(queue, record);
      current += static_cast<unsigned long long>(record) * KLAP_RECORD_BYTES;
      linear = static_cast<Place>(block - begin);
      count = static_cast<Place>(end - block < left ? end - block : left);
      block += count;
      left -= count;
      ++record;
#endif
    } else if (big_done < queue->big) {
      const unsigned int index = queue->capacity - 1u - big_done++;
      current += static_cast<unsigned long long>(index) * KLAP_RECORD_BYTES;
#ifdef KLAP_MERGE_PARTS
      // Neighbouring parts, too: they are run as one.
      const Place all = parts_in(grid_of(current, kReadOnly).x), share = all / groups, rest = all % groups;
      linear = mine * share + (mine < rest ? mine : rest);
      count = share + (mine < rest ? 1u : 0u);
#else
      const Place all = size_of(grid_of(current, kReadOnly));
      linear = mine;
      count = mine < all ? (all - mine + groups - 1) / groups : 0;
      step = groups;
#endif
    } else {
      break;
    }
#ifndef KLAP_FUSED
    __klap_child_arguments(current + KLAP_ARGS_OFFSET);
#endif
#ifdef KLAP_MERGE_PARTS
    // `next` parts in each turn, which the body is told in place of its block's second index.
    const unsigned int parts = grid_of(current, kReadOnly).x;
    const Place next = (parts & kUncut) != 0 ? 1u : count;
#pragma unroll 1
    for (; count != 0; count -= next, linear += next) {
      __klap_child_body(current + KLAP_ARGS_OFFSET, linear, next, 0, parts_in(parts), 1, 1, thread, 0, 0);
      end_virtual_block();
    }
#else
#pragma unroll 1
    for (; count != 0; --count, linear += step) {
      const uint4 grid = grid_of(current, kReadOnly);
#ifdef KLAP_BLOCKS_DIFFER
      const uint3 size = block_of(grid.w);
      const unsigned int threads = size.x * size.y * size.z, warps = (threads + 31u) / 32u;
      const Place number = quotient(linear, warps);
      const unsigned int virtual_thread = static_cast<unsigned int>(linear - number * warps) * 32u + thread;
      if (virtual_thread >= threads) continue;
      const uint3 at = position_in(grid, static_cast<Linear>(number));
      const uint3 place = place_in(size, virtual_thread);
      __klap_child_body(current + KLAP_ARGS_OFFSET, at.x, at.y, at.z, grid.x, grid.y, grid.z, place.x,
                        place.y, place.z, size.x, size.y, size.z);
#else
      const uint3 at = position_in(grid, linear);
      __klap_child_body(current + KLAP_ARGS_OFFSET, at.x, at.y, at.z, grid.x, grid.y, grid.z,
                        thread % KLAP_CHILD_X, thread / KLAP_CHILD_X % KLAP_CHILD_Y,
                        thread / (KLAP_CHILD_X * KLAP_CHILD_Y));
      end_virtual_block();
#endif
    }
#endif
  }
  leave(queue, working(KLAP_GRID_ARGUMENT{queue->packed, queue->big}));
}
