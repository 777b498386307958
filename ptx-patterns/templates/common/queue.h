// The record queue of one launch context: the layout that device templates and the host runtime share.
//
// A recording parent appends one record per child launch; the consumer runs them, started by the host or by
// the last thread of the parent. Record index and block prefix come from one 64-bit atomic. So the two agree
// in whatever order warps arrive, and the prefix array is sorted by construction. Children too large for the
// packed prefix ("big": 2^16 blocks or more) take slots from the far end of the same array. They need no
// prefix: each is wide enough to fill the GPU by itself. (flat.h counts threads in place of blocks.) Because
// every thread of the parent's grid launches at most once, `capacity` = threads of that grid makes overflow
// impossible.
//
// If groups of blocks launch their children apart from each other, each group has counters of its own. It
// fills its own stretch of the arrays, as many slots as it has threads (group.h). All counters are zero
// between two parents, so a queue serves grids and blocks of any size without being written anew.
//
// The counters may be emptied only when no thread reads them any more. A consumer that the host launches
// would have to count its blocks out for that. This costs it two microseconds, as long as running a few
// children takes. So a queue may be double-buffered: it has two heads, used by alternate parents. A consumer
// that is made for that empties the head that it does not read. The consumer before it, long complete, has
// read that one (consumer_end.h).
//
// This file is compiled by NVRTC into the templates and by the host compiler into the runtime.
#ifndef KLAP_QUEUE_H
#define KLAP_QUEUE_H

#include "common/report.h"

// The counters of the threads that fill a queue, or one stretch of it.
struct KlapCounters {
  // Records in the low 24 bits, virtual blocks in the high 40. Neither can carry: there are at most 2^24 - 1
  // records of less than 2^16 blocks. (If threads are counted, a child that counts has fewer the more records
  // there may be.)
  unsigned long long packed;
  unsigned int big;  // records taken from the far end
  // Consumer blocks that have left (launcher "host") or threads of the parent that have ("device"); the last
  // one resets the counters. The two never count at the same time, as a queue serves one stream.
  unsigned int exited;
  // Where they differ between launches (sizes.h): the threads of the largest child's block, and the most
  // dynamic shared memory of a child, in bytes.
  unsigned int threads;
  unsigned int shared_bytes;
};

struct KlapGroup;

// Arguments that are the same for all children of the grid, or of a group, have a place of so many bytes. The
// queue's own is behind its head, in memory that every queue has. A group's is beside its counters. The
// thread that takes the first record stores them, the first from either end. These are two threads at most,
// which store the same. No thread reads them before all threads of the grid, or of the group, have left.
#define KLAP_ONCE_OFFSET 64
#define KLAP_ONCE_BYTES 192
#define KLAP_GROUP_ONCE_BYTES 80  // with it a group takes a line of the caches
#define KLAP_HEAD_BYTES (KLAP_ONCE_OFFSET + KLAP_ONCE_BYTES)
#define KLAP_SEQUENCE_ONCE 32  // where an exact grid's parameter (sequence.h) says which place it is

// The head. If groups have their own counters, the head's own count the groups: `exited` those that have
// left, `big` those whose children wait to be launched, `packed` those whose turn it is (launch_consumer.cu).
struct KlapQueue : KlapCounters {
  unsigned int capacity;       // in records
  int other;                   // bytes from here to the queue's other head; 0: there is none
  unsigned long long* prefix;  // [capacity] first virtual block of record i
  unsigned char* records;      // [capacity records]
  KlapReport* report;          // of the queue's stream, null if not asked for
  KlapGroup* groups;           // [as many as the shape has], null where the grid is the only group
};

// One group of blocks.
struct KlapGroup : KlapCounters {
  unsigned long long first;  // children wait to be launched: first block of the sequence that was not yet
  unsigned int waiting;      // entry of a list of groups whose children wait; any group's place will do
  unsigned int unused;
  alignas(16) unsigned char once[KLAP_GROUP_ONCE_BYTES];
};

// A record begins with the child's grid (record_grid.h). Its arguments follow at KLAP_ARGS_OFFSET, laid out
// as the child's parameter block. In a packed record, the arguments that are read and differ between children
// stand behind the grid wherever there is room. A launch that CUDA refuses leaves a record of no blocks.
#define KLAP_INDEX_BITS 24
#define KLAP_MAX_RECORDS ((1u << KLAP_INDEX_BITS) - 1)
#define KLAP_BIG_CHILD_BLOCKS (1u << 16)

#endif
