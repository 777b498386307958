// Grids of several blocks: how the executor's blocks share those of a grid among themselves.
//
// The block that begins a grid makes an item for each block that waits, and all of them take the grid's
// blocks one after another, fewer at a time towards the end.
#ifndef KLAP_SHARES_H
#define KLAP_SHARES_H

#include "executor/grid_queue.h"

// Blocks of a grid that this block runs next, and items for others that it makes of the grid.
struct Share {
  unsigned long long first, first_item;
  unsigned int count, new_items;
  bool is_new;   // the new items are for the parts behind the first one, which have `count` blocks each
  bool is_last;  // there are no more blocks
  // For the first thread, in whose registers they would be in the way of all: how many blocks are taken for
  // later, whether this block has begun the grid, and how many blocks waited when it last asked.
  unsigned int ahead_size;
  bool has_begun;
  unsigned int waiting;
};

// New items of a grid for blocks that wait, which are at most `most`. Places are never short. Half of them
// are for the first items of all grids, which are no more than records. The other half has room for the new
// items of all blocks. A block that makes new ones has seen that those it made before have been given out.
static __device__ __forceinline__ void make_items(KlapWorkQueue* queue, const KlapGridBlock& own,
                                                  KlapGridRecord* record, unsigned int waiting,
                                                  unsigned long long most, Share& share) {
  const unsigned int room = own.arrays.places / (2 * gridDim.x);
  unsigned int count = waiting < room ? waiting : room;
  if (most < count) count = static_cast<unsigned int>(most);
  if (count == 0) return;
  add_global(&record->pending, KLAP_GRID_PENDING_ITEM * count);
  share.first_item = add_global(&queue->ready_items, static_cast<unsigned long long>(count));
  share.new_items = count;
}

// The blocks that wait for an item. Both counts are below 2^31 apart, as each waiting block has taken one,
// and each item that is ready has a place.
static __device__ __forceinline__ unsigned int waiting_blocks(KlapWorkQueue* queue) {
  const unsigned int turns = static_cast<unsigned int>(load_relaxed(&queue->turns));
  const unsigned int ready = static_cast<unsigned int>(load_relaxed(&queue->ready_items));
  const int waiting = static_cast<int>(turns - ready);
  return waiting < 0 ? 0 : static_cast<unsigned int>(waiting);
}

// So many blocks this block takes at a time where those from `from` on are left. They get fewer towards the
// end, so that all blocks are done at about the same time: at most an eighth of an even share each.
static __device__ __forceinline__ unsigned int size_of_share(unsigned long long blocks,
                                                             unsigned long long from) {
  constexpr unsigned int kShareOfEven = 3, kLargestShare = 1u << 20;
  const unsigned long long left = from < blocks ? blocks - from : 0;
  const unsigned long long share = left >> (kShareOfEven + 32 - __clz(gridDim.x));
  if (share == 0) return 1;
  return share < kLargestShare ? static_cast<unsigned int>(share) : kLargestShare;
}

// Half of an even share of so many blocks, if so many run them. It needs no atomics. The other half is given
// out as blocks become free, since some blocks take longer than others.
static __device__ __forceinline__ unsigned int size_of_part(unsigned long long blocks, unsigned int workers) {
  const unsigned long long size = (blocks / workers + 1) / 2;
  return size < KLAP_GRID_MOST_PART_SIZE ? static_cast<unsigned int>(size) : KLAP_GRID_MOST_PART_SIZE;
}

// Begins a grid: this block runs the first part, and each block that waits another one.
static __device__ __forceinline__ void first_share(KlapWorkQueue* queue, const KlapGridBlock& own,
                                                   KlapGridRecord* record, unsigned long long blocks,
                                                   bool in_order, Share& share) {
  const unsigned long long others = blocks - 1;
  make_items(queue, own, record, waiting_blocks(queue),
             others < KLAP_GRID_MOST_PARTS ? others : KLAP_GRID_MOST_PARTS - 1, share);
  const unsigned int workers = in_order ? 1 : share.new_items + 1;
  share.first = 0;
  share.count = in_order ? 1 : size_of_part(blocks, workers);
  share.is_new = !in_order;
  const unsigned long long given = static_cast<unsigned long long>(workers) * share.count;
  share.is_last = given == blocks;
  share.has_begun = true;
  record->next_block = given;
}

// Takes blocks of a grid for later, and returns the first. It does not wait for that answer, which takes as
// long as a small block. The block that began the grid also asks how many blocks wait.
static __device__ __forceinline__ unsigned long long take_ahead(KlapWorkQueue* queue, KlapGridRecord* record,
                                                                unsigned long long blocks,
                                                                unsigned long long from, bool in_order,
                                                                Share& share) {
  const unsigned int size = in_order ? 1 : size_of_share(blocks, from);
  share.ahead_size = size;
  if (share.has_begun) share.waiting = waiting_blocks(queue);
  return add_global(&record->next_block, static_cast<unsigned long long>(size));
}

// Runs the blocks that were taken next. The block that began the grid makes items for blocks that wait by
// now: if all did, there would soon be more items than such blocks.
static __device__ __forceinline__ void next_share(KlapWorkQueue* queue, const KlapGridBlock& own,
                                                  KlapGridRecord* record, unsigned long long blocks,
                                                  unsigned long long ahead, Share& share) {
  const unsigned long long size = share.ahead_size, left = ahead < blocks ? blocks - ahead : 0;
  share.first = ahead;
  share.count = static_cast<unsigned int>(left < size ? left : size);
  share.is_new = false;
  share.is_last = left <= size;
  if (!share.is_last && share.has_begun) make_items(queue, own, record, share.waiting, left - size, share);
}

// Puts the new items of a grid in their places, by all threads of the block. It has begun the grid, so its
// own item names no part.
static __device__ __forceinline__ void put_new_items(const KlapGridBlock& own, const Share& share,
                                                     unsigned long long item) {
  const unsigned int new_items = share.new_items;
  if (threadIdx.x >= new_items) return;
  release();
  const unsigned long long more = KLAP_GRID_FLAGS(share.is_last ? 0 : KLAP_GRID_TAKES_MORE);
#pragma unroll 1
  for (unsigned int i = threadIdx.x; i < new_items; i += blockDim.x)
    put(own.arrays, share.first_item + i,
        item | more | (share.is_new ? KLAP_GRID_PART(i + 1, share.count) : 0));
}

#endif
