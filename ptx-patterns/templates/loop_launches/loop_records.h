// Records of launches that keep an order: each knows the one before it and the one behind it.
//
// CUDA runs the launches into one stream one after another. A stream belongs to one thread (its own streams,
// or the per-thread stream), or to a block (its NULL stream). The number of loop launches is not known, so
// all are recorded in a queue of fixed size (work_queue.h). Launches of one stream form a sequence. Only the
// first of a sequence is made ready for the consumer when it is recorded. The block that finishes a child
// goes on with the one behind it (ordered.cu). So no block waits for a child that another one has not begun.
// A launch into a stream without any order has no use for this: its record is a sequence of its own.
//
// A kernel may launch at several places, all of which record in one queue. They may launch several kernels,
// or one with different blocks.
//
// If the queue is full, the result depends on the stream's owner. A thread takes its own records back and
// makes those launches itself, in order, before the new one. While it runs the consumer does not, so no other
// code sees this. Launches of a whole block cannot be taken back by one of its threads. CUDA itself refuses
// launches beyond the limit of pending ones, and the queue holds at least that many. So the launch is refused
// with CUDA's error. If groups of blocks launch apart, each with a part of the queue, all launches are
// refused so.
#ifndef KLAP_LOOP_RECORDS_H
#define KLAP_LOOP_RECORDS_H

#include "worklist/work_queue.h"

// The header in front of the arguments. The first four words are those of work_queue.h. A record without
// blocks was taken back.
struct KlapLoopRecord {
  unsigned int grid_x, grid_y, grid_z, item;
  unsigned int before;               // the record of the launch before it, as a link
  unsigned int behind;               // the record of the one behind it, likewise
  unsigned int unfinished;           // its items that are not done
  unsigned int kernel;               // its number in the consumer
  unsigned long long stream, child;  // for a launch that is made after all
};

// A link is how an item names its record (KLAP_WORK_ITEM): where it begins, counted in 16 bytes from the
// first one, plus one.
#define KLAP_LINK_NONE 0u
// In place of a thread's last record: its launches are the program's own from here on.
#define KLAP_LINK_NATIVE 0xffffffffu

// A thread that has recorded nothing makes launches of so many blocks itself, up to so many of them.
#define KLAP_LARGE_GRID 256u
#define KLAP_MOST_LARGE_LAUNCHES 1024u

// The launches that a launch comes behind, as in analysis/legality/loop_launches.h.
#define KLAP_SCOPE_NONE 0u
#define KLAP_SCOPE_THREAD 1u
#define KLAP_SCOPE_BLOCK 2u

#endif
