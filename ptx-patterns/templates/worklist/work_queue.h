// The queue of a persistent consumer: the layout that device templates and the host runtime share.
//
// Children that launch again are recorded in this queue while it is being worked off, so nothing here can be
// read as a whole. Every piece of work carries its own mark of being ready. A record is a child launch. Its
// blocks are shared out over up to KLAP_WORK_PARTS items, which consumer blocks take in the order of their
// numbers. An item is one word, so the store that makes it ready also fills it in. Children of several
// kernels share the queue. Records are as large as the largest needs, and an item names the kernel by its
// number in the consumer.
//
// The number of children is not known. Records and items that do not fit are not reserved: such a launch is
// the program's own, and from there on everything is as it is natively.
//
// Records may be in two parts of memory, the first ones in front. Memory that holds much more than most
// launches need comes with its use, and costs time then (runtime/queues/lazy_memory.h). The front is there
// from the beginning. Both parts are close enough to each other for an item to name any record in them.
//
// Words that many threads change at once stand in lines of their own, apart from words that all of them read.
//
// Loop launches use the queue as well (loop_records.h), and then the parent may launch the consumer itself.
// If groups of its blocks do so apart from each other, each has a queue of its own: a stretch of the arrays,
// and a head that describes it. The thread that launches the group's consumer writes that head
// (work_queue_group.h).
//
// This file is compiled by NVRTC into the templates and by the host compiler into the runtime.
#ifndef KLAP_WORK_QUEUE_H
#define KLAP_WORK_QUEUE_H

#include "common/queue.h"

#define KLAP_FREE_LISTS 8u

// Where records are. The one with number n begins n records behind the begin of its part; the rest leaves out
// as much as the front has. All is 0 if the records are in one part.
struct alignas(16) KlapRecordPlaces {
  unsigned int front_records;  // records of the front: the first ones
  // The distances of both parts from KlapWorkQueue's `records`, in units. The lower part has 0.
  unsigned int front, rest;
};

struct KlapWorkQueue {
  unsigned int record_capacity;
  unsigned int item_capacity;
  unsigned long long* items;  // [item_capacity] zero, or ready: KLAP_WORK_ITEM
  // [record_capacity] each a grid and arguments, as in queue.h; where they are in two parts, the lower part
  unsigned char* records;
  KlapReport* report;  // of the queue's stream, null if not asked for
  // Consumer blocks that have left, the last of which resets the counters, and, from bit 32 on, the children
  // that they ran.
  unsigned long long exited;
  unsigned int native;  // launches that did not fit
  // Some thread has made launches itself that its recorded ones must come behind (loop_record.cu).
  unsigned int after_native;
  unsigned int waiting;  // groups whose consumer waits to be launched; of a group: an entry of a list of them
  KlapWorkQueue* groups;  // [as many as the shape has] heads, null where the grid is the only group
  KlapRecordPlaces places;

  // The numbers reserved so far: records in the low half, items in the high one. Once either is used up, that
  // stays so: behind a reservation that does not fit there is none that does. Neither half can carry, however
  // often it is tried. If the consumer runs a worklist or launches keep an order, a thread adds without
  // looking. When it finds that either was used up before, it sets both to just that before it goes on
  // (KLAP_WORK_USED_UP). So all additions since the last such store were made by threads that have not stored
  // since. Each running thread adds once, fewer than 2^19 of them on any device, and for the 32 lanes of its
  // warp. That is less than 2^31 together with the true numbers. Otherwise, if the consumer reads how many
  // items there are, a thread looks first, and adds only to a half that is not used up. The same bound holds,
  // and the number stays near its value.
  alignas(128) unsigned long long reserved;
  // Two numbers that one atomic changes, since a block of the consumer is done with an item when it takes the
  // next. The high half counts the items that were given to such blocks, and tickets for items still to come.
  // These are at most as many as the blocks take at a time more than there are items, so this cannot carry.
  // With a worklist, the low half counts the items that were reserved, with room, and are not done. A child's
  // items are counted there before the item that it was launched from is counted off. So nothing is counted
  // off that was not counted. Once the consumer runs, 0 means that all is done and stays. All of that is in
  // this one word, whose changes have an order that agrees with the order of events: it takes no fences.
  alignas(128) unsigned long long turns;
  // Before the consumer runs, where the parent launches it: threads of the parent that have left; where there
  // are groups, their threads in their own heads, and here the groups of which all have.
  unsigned long long left;
  // For a queue whose launches have an order (loop_records.h): the items that have been made
  // ready so far.
  unsigned int published;
  // For the executor (executor/grid_records.h): the items that have been made ready so far; the words of a
  // grid's record for the grid that the host launched; and lists of records that were given back.
  alignas(32) unsigned long long ready_items;
  unsigned long long root_pending;
  unsigned int root_first_tail, root_last_tail;
  alignas(32) unsigned long long free_records[KLAP_FREE_LISTS];
  alignas(128) unsigned int done;  // set by the block that counts off the last item
};

// The largest number of items that one child's blocks are shared out over. Fewer blocks give an item each.
#define KLAP_WORK_PARTS 64u

// The limit is far enough below the capacity of a half of `reserved`, also for four times as many items.
#define KLAP_WORK_MAX_RECORDS (1u << 28)

// One more item that was taken, in `turns`. Less so many, they are done as well.
#define KLAP_WORK_TURN (1ull << 32)

// `reserved` of a queue that has nothing left of either.
#define KLAP_WORK_USED_UP(records, items) (static_cast<unsigned long long>(items) << 32 | (records))

// A ready item: from the top the kernel's number in 16 bits; one bit that says whether the child has more
// blocks than parts, else each part is one block and its number is that block's; in 15 bits which part of the
// child it is; in the low half where its record begins, counted in 16 bytes from the first one, plus one. A
// record's fourth word is the number of its first item.
#define KLAP_WORK_ITEM_STEP (1ull << 32)
#define KLAP_WORK_SHARED_OUT (1ull << 47)
#define KLAP_WORK_KERNEL_STEP (1ull << 48)
#define KLAP_WORK_ITEM(kernel, offset, part)                         \
  (static_cast<unsigned long long>(kernel) * KLAP_WORK_KERNEL_STEP + \
   static_cast<unsigned long long>(part) * KLAP_WORK_ITEM_STEP + ((offset) / 16 + 1))
#define KLAP_WORK_ITEM_OFFSET(item) ((static_cast<unsigned int>(item) - 1ull) * 16)
#define KLAP_WORK_ITEM_PART(item) (static_cast<unsigned int>((item) >> 32) & 0x7fffu)
#define KLAP_WORK_ITEM_IS_SHARED_OUT(item) (((item)&KLAP_WORK_SHARED_OUT) != 0)
#define KLAP_WORK_ITEM_KERNEL(item) (static_cast<unsigned int>((item) >> 48))
#define KLAP_WORK_MAX_BYTES (1ull << 35)  // of all records, which is less than an item can name
// The bytes by which an item counts the distance of its record, and the largest distance of a record's end.
// The largest number that would be left means something else (loop_records.h).
#define KLAP_WORK_UNIT 16ull
#define KLAP_WORK_NAMED_BYTES (((1ull << 32) - 2) * KLAP_WORK_UNIT)

#endif
