// A group is the blocks whose children one consumer runs if the parent launches it: the whole grid, or some
// of its blocks (group.h). This file tells which part of the queue the group has (work_queue.h).
//
// Groups have equal parts of the arrays, and each has a head with counters. That head holds nothing else
// while the group records: all threads read the arrays' addresses in the queue's own head. A record is named
// by its place in the whole array, an item by its place in the group's part. So the consumer that is given a
// group's head runs as it does over a whole queue.
#ifndef KLAP_WORK_QUEUE_GROUP_H
#define KLAP_WORK_QUEUE_GROUP_H

#include "common/group.h"
#include "worklist/work_queue.h"

#ifdef KLAP_GROUP_BLOCKS

// Where the thread's group counts.
static __device__ __forceinline__ KlapWorkQueue* counters_of(KlapWorkQueue* queue) {
  return queue->groups + own_group();
}

static __device__ __forceinline__ unsigned int records_of_group(const KlapWorkQueue* queue) {
  return queue->record_capacity / number_of_groups();
}

static __device__ __forceinline__ unsigned int items_of_group(const KlapWorkQueue* queue) {
  return queue->item_capacity / number_of_groups();
}

#else

static __device__ __forceinline__ KlapWorkQueue* counters_of(KlapWorkQueue* queue) { return queue; }

static __device__ __forceinline__ unsigned int records_of_group(const KlapWorkQueue* queue) {
  return queue->record_capacity;
}

static __device__ __forceinline__ unsigned int items_of_group(const KlapWorkQueue* queue) {
  return queue->item_capacity;
}

#endif

// The first ones that the thread's group has.
static __device__ __forceinline__ unsigned int first_record_of_group(const KlapWorkQueue* queue) {
  return own_group() * records_of_group(queue);
}

static __device__ __forceinline__ unsigned int first_item_of_group(const KlapWorkQueue* queue) {
  return own_group() * items_of_group(queue);
}

#endif
