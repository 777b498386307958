// The second halves of blocks that stopped where they wait for their children
// (analysis/suspension/second_half.h).
//
// Each block launches its own into the tail-launch stream of its grid. CUDA would run one after another
// there, but no program has an order among the blocks of a grid. So all of them begin at once, when the
// grid's children are complete.
#ifndef KLAP_SECOND_HALVES_H
#define KLAP_SECOND_HALVES_H

#include "executor/grid_queue.h"

// Begins the second halves of the other blocks of a grid, when this block has the first of them. The grid
// waits for all of them as for launches of its own. The first one is counted before the others begin, so the
// grid is not complete before all are there.
static __device__ __forceinline__ void start_other_halves(KlapWorkQueue* queue, const KlapGridArrays& arrays,
                                                          KlapGridRecord* first) {
  constexpr unsigned int kAtOnce = 8;
  const unsigned int parent = first->parent;
  const unsigned int kind = first->kind;  // of all of them
  unsigned long long* const pending = pending_of(queue, arrays.records, parent);
  *first_tail_of(queue, arrays.records, parent) = 0;
  *last_tail_of(queue, arrays.records, parent) = 0;
  first->behind = KLAP_GRID_NOTHING;
  add_global(pending, 1ull);
  unsigned int half = first->next;
#pragma unroll 1
  while (half != 0) {
    unsigned int halves[kAtOnce], count = 0;
#pragma unroll
    for (unsigned int i = 0; i < kAtOnce; ++i) {
      halves[i] = half;
      if (half == 0) continue;
      KlapGridRecord* const record = grid_at(arrays.records, half);
      record->behind = KLAP_GRID_NOTHING;
      half = record->next;
      ++count;
    }
    add_global(pending, static_cast<unsigned long long>(count));
    // The reads of the records come before as well, since their grids write to them.
    release();
    const unsigned long long number = add_global(&queue->ready_items, static_cast<unsigned long long>(count));
#pragma unroll
    for (unsigned int i = 0; i < kAtOnce; ++i) {
      if (halves[i] != 0) put(arrays, number + i, KLAP_GRID_ITEM(kind, halves[i]));
    }
  }
}

#endif
