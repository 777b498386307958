// Records of launches that keep an order: each knows the one before it and the one behind it.
//
// CUDA runs the launches into one stream one after another. Who shares a stream is one thread (its own
// streams, or the per-thread stream), or a block (its NULL stream). How many launches there will be is not
// known where they stand in loops, so all are recorded in a queue of fixed size (feed.h). Launches of one
// stream form a chain. Only the first of a chain is made ready for the consumer when it is recorded; whoever
// finishes a child goes on with the one behind it (ordered.cu). So nobody waits for a child that somebody
// else has not begun. A launch into a stream without any order has no use for this: its record is a chain of
// its own.
//
// A kernel may launch at several places, all of which record in one queue. They may launch several kernels,
// or one with different blocks.
//
// Where the queue is full, what happens depends on who shares the stream. A thread takes its own records back
// and makes those launches itself, in order, before the new one: while it runs the consumer does not, so
// nobody looks on. Launches of a whole block cannot be taken back by one of its threads. CUDA itself refuses
// launches beyond the limit of pending ones, and the queue holds at least that many: so the launch is refused
// with the same error. Where groups of blocks launch apart, each with a part of the queue, all launches are.
#ifndef KLAP_CHAIN_H
#define KLAP_CHAIN_H

#include "worklist/feed.h"

// In front of the arguments. The first four words are those of feed.h; no blocks: the record was taken back.
struct KlapChained {
  unsigned int grid_x, grid_y, grid_z, item;
  unsigned int before;               // the record of the launch before it, as a link
  unsigned int behind;               // the record of the one behind it, likewise
  unsigned int unfinished;           // its items that are not done
  unsigned int kernel;               // its number in the consumer
  unsigned long long stream, child;  // for a launch that is made after all
};

// A link is how an item names its record (KLAP_FEED_ITEM): where it begins, counted in 16 bytes from the
// first one, plus one.
#define KLAP_CHAIN_NONE 0u
// In place of a thread's last record: its launches are the program's own from here on.
#define KLAP_CHAIN_NATIVE 0xffffffffu

// Whose launches a launch comes behind; as in analysis/legality/chaining.h.
#define KLAP_SCOPE_NONE 0u
#define KLAP_SCOPE_THREAD 1u
#define KLAP_SCOPE_BLOCK 2u

#endif
