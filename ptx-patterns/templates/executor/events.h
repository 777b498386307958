// Events of device code, as the executor keeps them.
//
// A record of an event and a wait for it are grids of the executor's own kernel in their streams (copies.h).
// So the grid of a record runs when all that stands before it in its stream is complete. A grid that waits
// launches a child, as far as the executor knows. That child is not made ready until the grid of the record
// has run. So the grid that waits is complete only then, and its stream goes on. No block waits.
//
// Each record has a state of its own, and the event names the state of its last record. Waits of earlier ones
// keep their states. The event, the grid of the record, and each wait refer to the state, and the last one
// gives it back. A wait takes a reference by the same atomic by which it learns the state. So a record of the
// event at the same time cannot give the state back.
#ifndef KLAP_EVENTS_H
#define KLAP_EVENTS_H

#include "executor/copy_arguments.h"
#include "executor/grid_queue.h"

// An event takes the place of a record, and its address is the handle.
struct KlapGridEvent {
  unsigned long long state;  // a link, 0 before the first record; times 2^32, the references that waits took
  unsigned int unused[13];
  unsigned int kind;  // KLAP_GRID_EVENT
};
#define KLAP_GRID_EVENT 0xfffffffeu  // in place of the kind of a grid's record

struct KlapGridEventState {
  unsigned long long waiting;  // the first child to make ready, KLAP_GRID_COMPLETE when the record has run
  unsigned int references;
};
// The references of an event that still names the state.
#define KLAP_EVENT_REFERENCES (1u << 30)

static __device__ __forceinline__ KlapGridEventState* state_at(unsigned char* records, unsigned int link) {
  return reinterpret_cast<KlapGridEventState*>(grid_at(records, link));
}

// Adds to the references of a state, and gives it back when there are none.
static __device__ __forceinline__ void refer(KlapWorkQueue* queue, unsigned char* records, unsigned int link,
                                             unsigned int change) {
  KlapGridEventState* const state = state_at(records, link);
  release();
  if (add_global(&state->references, change) + change != 0) return;
  acquire(&state->references);
  give_back(queue, records, link);
}

// The grid of a record: all that was before it in its stream is complete.
static __device__ __forceinline__ void run_record(KlapWorkQueue* queue, const KlapGridArrays& arrays,
                                                  unsigned int link) {
  KlapGridEventState* const state = state_at(arrays.records, link);
  release();
  unsigned int child = static_cast<unsigned int>(exchange_global(&state->waiting, KLAP_GRID_COMPLETE));
  acquire(&state->waiting);
#pragma unroll 1
  while (child != 0) {
    KlapGridRecord* const record = grid_at(arrays.records, child);
    const unsigned int next = record->next;
    publish_item(queue, arrays, KLAP_GRID_ITEM(record->kind, child));
    child = next;
  }
  refer(queue, arrays.records, link, 0u - 1u);
}

// The grid of a wait, and its child.
static __device__ __forceinline__ void run_wait(KlapWorkQueue* queue, KlapGridBlock* block, unsigned int link,
                                                unsigned int child) {
  const KlapGridArrays arrays = block->arrays;
  KlapGridEventState* const state = state_at(arrays.records, link);
  unsigned long long before = load_relaxed(&state->waiting);
#pragma unroll 1
  while (before != KLAP_GRID_COMPLETE) {
    grid_at(arrays.records, child)->next = static_cast<unsigned int>(before);
    release();
    const unsigned long long found =
        compare_and_swap_global(&state->waiting, before, static_cast<unsigned long long>(child));
    if (found == before) break;
    before = found;
  }
  if (before == KLAP_GRID_COMPLETE) {
    acquire(&state->waiting);
    give_back(queue, arrays.records, child);
  } else {
    block->children += 1;
    block->others += 1;
  }
  refer(queue, arrays.records, link, 0u - 1u);
}

static __device__ __forceinline__ void run_event(const KlapCopy& call, KlapGridBlock* block) {
  KlapWorkQueue* const queue = reinterpret_cast<KlapWorkQueue*>(call.to);
  const unsigned int state = static_cast<unsigned int>(call.from);
  if (call.does == KLAP_DOES_RECORD) run_record(queue, block->arrays, state);
  if (call.does == KLAP_DOES_WAIT) run_wait(queue, block, state, static_cast<unsigned int>(call.width));
}

#endif
