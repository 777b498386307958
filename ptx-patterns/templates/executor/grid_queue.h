// Records and items of the executor (grid_records.h), as recording threads and the executor itself use them.
//
// Constants: KLAP_RECORD_BYTES, the size of a record.
#ifndef KLAP_GRID_QUEUE_H
#define KLAP_GRID_QUEUE_H

#include "executor/grid_records.h"
#include "worklist/record_places.h"
#include "worklist/turns.h"

static __device__ __forceinline__ KlapGridRecord* grid_at(unsigned char* records, unsigned int link) {
  return reinterpret_cast<KlapGridRecord*>(records + KLAP_WORK_ITEM_OFFSET(link));
}

// Numbers of items go round in a number of places that is a power of two.
static __device__ __forceinline__ KlapGridArrays arrays_of(const KlapWorkQueue* queue) {
  return {queue->items, queue->records, 1u << (31 - __clz(queue->item_capacity))};
}

// Puts an item in the place of its number. The block that was given the item before it in this place is about
// to look there. In the first round there was none.
static __device__ __forceinline__ void put(const KlapGridArrays& arrays, unsigned long long number,
                                           unsigned long long item) {
  unsigned long long* const at = arrays.items + (number & (arrays.places - 1));
  if (number >= arrays.places) {
#pragma unroll 1
    while (load_relaxed(at) != 0) __nanosleep(32);
  }
  store_relaxed(at, item);
}

// Makes an item ready for any block, with all that this thread knows of.
static __device__ __forceinline__ void publish_item(KlapWorkQueue* queue, const KlapGridArrays& arrays,
                                                    unsigned long long item) {
  release();
  put(arrays, add_global(&queue->ready_items, 1ull), item);
}

// The lists of records that were given back: the first one's link in the low half of the word, and a number
// that changes with each change. Blocks of one multiprocessor use the same list first. With a single list,
// most blocks would find it changed whenever many grids end at the same time.
static __device__ __forceinline__ unsigned int own_free_list() {
  unsigned int processor;
  asm("mov.u32 %0, %%smid;" : "=r"(processor));
  return processor % KLAP_FREE_LISTS;
}

static __device__ __forceinline__ void set_next(unsigned char* records, unsigned int link,
                                                unsigned int next) {
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&grid_at(records, link)->next), "r"(next) : "memory");
}

// Gives records back of which each but the last one has the link of the next one in `next`.
static __device__ __forceinline__ void give_back(KlapWorkQueue* queue, unsigned char* records,
                                                 unsigned int first, unsigned int last) {
  unsigned long long* const list = &queue->free_records[own_free_list()];
  unsigned long long before = load_relaxed(list);
#pragma unroll 1
  for (;;) {
    set_next(records, last, static_cast<unsigned int>(before));
    release();
    const unsigned long long now = ((before >> 32) + 1) << 32 | first;
    const unsigned long long found = compare_and_swap_global(list, before, now);
    if (found == before) return;
    before = found;
  }
}
static __device__ __forceinline__ void give_back(KlapWorkQueue* queue, unsigned char* records,
                                                 unsigned int link) {
  give_back(queue, records, link, link);
}

// A record of a list; 0 if there is none.
static __device__ __forceinline__ unsigned int take_back(unsigned long long* list, unsigned char* records) {
  unsigned long long first = load_relaxed(list);
#pragma unroll 1
  while (static_cast<unsigned int>(first) != 0) {
    acquire(list);
    const unsigned int link = static_cast<unsigned int>(first);
    const unsigned int next = load_relaxed(&grid_at(records, link)->next);
    const unsigned long long found = compare_and_swap_global(list, first, ((first >> 32) + 1) << 32 | next);
    if (found == first) {
      acquire(list);
      return link;
    }
    first = found;
  }
  return 0;
}

// A record that was given back; 0 if there is none.
static __device__ __forceinline__ unsigned int take_back(KlapWorkQueue* queue, unsigned char* records) {
  const unsigned int own = own_free_list();
  unsigned int link = 0;
#pragma unroll 1
  for (unsigned int i = 0; i < KLAP_FREE_LISTS && link == 0; ++i)
    link = take_back(&queue->free_records[(own + i) % KLAP_FREE_LISTS], records);
  return link;
}

// Exchanges the word behind a grid, with all that this thread knows of. If the grid is complete, this thread
// is the second one to do so. It acquires what the first one knew, and has the record for itself.
static __device__ __forceinline__ unsigned long long exchange_behind(KlapGridRecord* record,
                                                                     unsigned long long word) {
  release();
  const unsigned long long before = exchange_global(&record->behind, word);
  if (before == KLAP_GRID_COMPLETE) acquire(&record->behind);
  return before;
}

// The words of a grid's record that also the grid has that the host launched.
static __device__ __forceinline__ unsigned long long* pending_of(KlapWorkQueue* queue, unsigned char* records,
                                                                 unsigned int link) {
  return link == 0 ? &queue->root_pending : &grid_at(records, link)->pending;
}
static __device__ __forceinline__ unsigned int* first_tail_of(KlapWorkQueue* queue, unsigned char* records,
                                                              unsigned int link) {
  return link == 0 ? &queue->root_first_tail : &grid_at(records, link)->first_tail;
}
static __device__ __forceinline__ unsigned int* last_tail_of(KlapWorkQueue* queue, unsigned char* records,
                                                             unsigned int link) {
  return link == 0 ? &queue->root_last_tail : &grid_at(records, link)->last_tail;
}

#endif
