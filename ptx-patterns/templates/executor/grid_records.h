// Records of grids that the executor runs (executor.cu): CUDA's device-side streams in software.
//
// CUDA promises three things about launches on the device. A grid begins when the one before it in its stream
// is complete. A grid is complete when its blocks and all grids that it has launched are. Its tail launches
// then run one after another, before whatever waits for the grid. A record holds what this takes: what stands
// behind the grid in its stream, how much of the grid is not done, and its list of tail launches.
//
// The block that finishes the last part of a grid finds what may begin now. So no block waits for a grid.
//
// Two threads may come to a grid's word `behind`: the one that completes the grid, and the one that launches
// into its stream next, or leaves the stream. Each exchanges the word, so the second one knows that it is the
// second. It starts the grid behind, if there is one, and gives the record back. Records that were given back
// are used again. So a queue of fixed size has room for any number of launches one after another.
#ifndef KLAP_GRID_RECORDS_H
#define KLAP_GRID_RECORDS_H

#include "worklist/work_queue.h"

// The header in front of a grid's arguments. A link names a record as an item's low half does (work_queue.h).
struct KlapGridRecord {
  unsigned int grid_x, grid_y, grid_z, block;  // KLAP_GRID_BLOCK
  unsigned long long behind;                   // 0: open; the item behind it in its stream; or a word below
  unsigned int parent;                         // the grid that launched it; 0: the one that the host launched
  // The grid that is complete when this one is: itself, or the one whose last tail launch it is. 0 is the
  // grid that the host launched.
  unsigned int completes;
  // The number of items that are not done, times 2^32; plus the launches by items that are done, less all its
  // launches that are complete. It is 0 when all is done, and not before. An item's launches are added only
  // when it is done, and until then its 2^32 are more than they are.
  unsigned long long pending;
  unsigned int first_tail, last_tail;
  unsigned long long next_block;  // of a grid of several blocks: the next one to run
  unsigned int next;              // the tail launch behind it; or the next record that was given back
  unsigned int kind;              // the high half of its item
};
#define KLAP_GRID_HEADER_BYTES 64u
#define KLAP_GRID_PENDING_ITEM (1ull << 32)
// `pending` of the grid that the host launched, when all is done. It begins at 0.
#define KLAP_GRID_ROOT_DONE (0ull - KLAP_GRID_PENDING_ITEM)

// An item of the executor: the kernel's number in the top 8 bits, a part and flags, and the record's link in
// the low half. A part is some blocks that follow one another: its number plus one, and how many blocks each
// part has, less one.
#define KLAP_GRID_MOST_KERNELS 255u
#define KLAP_GRID_KIND(kernel) (static_cast<unsigned int>(kernel) << 24)
#define KLAP_GRID_IS_ONE_BLOCK 1u
#define KLAP_GRID_IS_TAIL 2u  // another tail launch stands behind it
// Nothing more comes into the grid's stream: the words `behind` of all grids from it on stay as they are.
#define KLAP_GRID_IS_FINAL 4u
// All that its parent waits for is this stream, and one block after another runs it. So the parent is done
// with its children when the last one of the stream is complete, and none of them is counted.
#define KLAP_GRID_IS_ONLY 8u
#define KLAP_GRID_TAKES_MORE 16u  // of several blocks: then as many as it can get
#define KLAP_GRID_PART_SHIFT 5
#define KLAP_GRID_MOST_PARTS 0x3fffu
#define KLAP_GRID_PART_SIZE_SHIFT 19
#define KLAP_GRID_MOST_PART_SIZE 32u
#define KLAP_GRID_ITEM(kind, link) (static_cast<unsigned long long>(kind) << 32 | (link))
#define KLAP_GRID_ITEM_KIND(item) (static_cast<unsigned int>((item) >> 32))
#define KLAP_GRID_ITEM_KERNEL(item) (static_cast<unsigned int>((item) >> 56))
#define KLAP_GRID_ITEM_PART(item) (KLAP_GRID_ITEM_KIND(item) >> KLAP_GRID_PART_SHIFT & KLAP_GRID_MOST_PARTS)
#define KLAP_GRID_ITEM_PART_SIZE(item) \
  ((KLAP_GRID_ITEM_KIND(item) >> KLAP_GRID_PART_SIZE_SHIFT & (KLAP_GRID_MOST_PART_SIZE - 1)) + 1)
#define KLAP_GRID_FLAGS(flags) (static_cast<unsigned long long>(flags) << 32)
#define KLAP_GRID_PART(number, size)                                                      \
  KLAP_GRID_FLAGS(static_cast<unsigned long long>((number) + 1) << KLAP_GRID_PART_SHIFT | \
                  static_cast<unsigned long long>((size)-1) << KLAP_GRID_PART_SIZE_SHIFT)

// Words of `behind` that are no item.
#define KLAP_GRID_COMPLETE (~0ull)         // the grid is complete
#define KLAP_GRID_NOTHING (~0ull - 1)      // nothing more comes into the stream
#define KLAP_GRID_SECOND_HALF (~0ull - 2)  // of a tail launch that has not begun: KLAP_STREAM_SECOND_HALF

#define KLAP_GRID_BLOCK(x, y, z) ((x) | (y) << 11 | (z) << 22)
#define KLAP_GRID_BLOCK_X(block) ((block)&0x7ffu)
#define KLAP_GRID_BLOCK_Y(block) ((block) >> 11 & 0x7ffu)
#define KLAP_GRID_BLOCK_Z(block) ((block) >> 22)

// Addresses and numbers of the queue, which stay as they are while the executor runs.
struct KlapGridArrays {
  unsigned long long* items;
  unsigned char* records;
  unsigned int places;  // the number of items that there is room for
};

// Words in shared memory by which the threads of a block take part. A block of the parent that the host
// launches has the first word alone. The arrays are kept here because no fence throws that memory away.
#define KLAP_GRID_KEPT 8  // records that were given back, at most, for launches of the block itself
struct KlapGridBlock {
  unsigned int last;  // the block's last launch into its NULL stream
  // The first launch into that stream, if the block may still hold its item. As long as it does, no other
  // block knows of the stream.
  unsigned int first;
  unsigned int children;  // launches by this item that its grid waits for
  unsigned int others;    // more than 0 if some of them are not `first` or behind it in its stream
  unsigned int first_tail, last_tail;    // if the grid has one block: its tail launches
  unsigned int completes, parent, kind;  // of the grid, as in its record
  int free;                              // of the records below; less than 0 if more were asked for
  unsigned int free_records[KLAP_GRID_KEPT];
  unsigned int barrier_warps, barrier_turn;  // child_barrier.h
  unsigned long long held;                   // an item that the block runs next
  KlapGridArrays arrays;
};

// Blocks of a device keep at most so many records for themselves. A launch is refused when all others are
// taken. CUDA must allow that, so the queue has so many more than CUDA lets wait.
#define KLAP_GRID_RESERVE 65536u

// The streams that a launch can be ordered in.
#define KLAP_STREAM_NONE 0u    // fire-and-forget, and streams that one launch has for itself
#define KLAP_STREAM_THREAD 1u  // the thread's own
#define KLAP_STREAM_BLOCK 2u   // the block's NULL stream
#define KLAP_STREAM_TAIL 3u
#define KLAP_STREAM_HANDLE 4u   // what the launch's handle says
#define KLAP_STREAM_CREATED 5u  // one that the program created
#define KLAP_STREAM_INVALID 6u
// Tail launches by blocks that stopped. They have no order among each other, so all of a grid begin together.
#define KLAP_STREAM_SECOND_HALF 7u

// A stream that the program created. It takes the place of a record, and its address is the handle. Any
// thread may launch into it, so its last launch stands in device memory.
struct KlapGridStream {
  unsigned int last;  // as in KlapGridBlock
  unsigned int unused[14];
  unsigned int kind;  // KLAP_GRID_STREAM
};
#define KLAP_GRID_STREAM 0xffffffffu  // in place of the kind of a grid's record

#endif
