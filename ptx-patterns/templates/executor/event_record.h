// In place of the program's calls for events (events.h). executor_record.cu includes this.
//
// The codes are those that an H100 returns with driver 580. An event that was never recorded is waited for in
// vain: the call succeeds and does nothing.
#ifndef KLAP_EVENT_RECORD_H
#define KLAP_EVENT_RECORD_H

#include "executor/events.h"

enum : unsigned int { kPendingCountExceeded = 69 };  // of cudaError_t

static __device__ __forceinline__ KlapGridEvent* event_of(const Place& place, unsigned long long handle) {
  return object_of<KlapGridEvent>(place, handle, KLAP_GRID_EVENT);
}

// The event names another state, or none, as a link.
static __device__ __forceinline__ void rename(const Place& place, KlapGridEvent* event, unsigned int link) {
  release();
  const unsigned long long before = exchange_global(&event->state, static_cast<unsigned long long>(link));
  acquire(&event->state);
  const unsigned int old = static_cast<unsigned int>(before);
  if (old == 0) return;
  refer(place.queue, place.arrays.records, old,
        static_cast<unsigned int>(before >> 32) - KLAP_EVENT_REFERENCES);
}

// A grid of the executor's own kernel that does nothing but what an event takes.
static __device__ __forceinline__ unsigned long long event_grid(const Place& place, unsigned int link,
                                                                unsigned int stream, unsigned int does,
                                                                unsigned int state, unsigned int child) {
  const unsigned long long item = fill_header(place, link, dim3(1, 1, 1), dim3(1, 1, 1), KLAP_COPIES, stream);
  *reinterpret_cast<KlapCopy*>(reinterpret_cast<unsigned char*>(place.at(link)) + KLAP_ARGS_OFFSET) = {
      reinterpret_cast<unsigned long long>(place.queue), 0, state, 0, child, 0, does, 0};
  return item;
}

static __device__ __forceinline__ bool may_have_events(unsigned int stream) {
  return stream != KLAP_STREAM_INVALID && stream != KLAP_STREAM_TAIL && stream != KLAP_STREAM_NONE;
}

extern "C" __device__ KlapGridQueued __klap_grid_create_event(KlapWorkQueue* queue, unsigned long long self,
                                                              KlapGridBlock* block, unsigned long long last,
                                                              unsigned long long* handle,
                                                              unsigned int flags) {
  constexpr unsigned int kBlockingSync = 1, kDisableTiming = 2;
  if (handle == nullptr || (flags & ~kBlockingSync) != kDisableTiming) return {last, kInvalidValue};
  const Place place(queue, self, block);
  const unsigned int link = find_record(place);
  if (link == 0) return {last, kMemoryAllocation};
  KlapGridEvent* const event = reinterpret_cast<KlapGridEvent*>(place.at(link));
  store_relaxed(&event->state, 0ull);
  store_relaxed(&event->kind, KLAP_GRID_EVENT);
  *handle = reinterpret_cast<unsigned long long>(event);
  return {last, kSuccess};
}

extern "C" __device__ KlapGridQueued __klap_grid_destroy_event(KlapWorkQueue* queue, unsigned long long self,
                                                               KlapGridBlock* block, unsigned long long last,
                                                               unsigned long long handle) {
  const Place place(queue, self, block);
  KlapGridEvent* const event = event_of(place, handle);
  if (event == nullptr) return {last, kInvalidValue};
  rename(place, event, 0);
  event->kind = 0;
  give_back(queue, place.arrays.records, place.link_of(handle));
  return {last, kSuccess};
}

extern "C" __device__ KlapGridQueued __klap_grid_record_event(KlapWorkQueue* queue, unsigned long long self,
                                                              KlapGridBlock* block, unsigned long long last,
                                                              unsigned int of_stream,
                                                              unsigned long long handle,
                                                              unsigned int null_stream,
                                                              unsigned long long event_handle) {
  const Place place(queue, self, block);
  const unsigned int stream = resolve(place, of_stream, handle, null_stream);
  KlapGridEvent* const event = event_of(place, event_handle);
  if (event == nullptr || !may_have_events(stream)) return {last, kInvalidValue};
  const unsigned int state = find_record(place);
  if (state == 0) return {last, kPendingCountExceeded};
  const unsigned int link = find_record(place);
  if (link == 0) {
    give_back(queue, place.arrays.records, state);
    return {last, kPendingCountExceeded};
  }
  state_at(place.arrays.records, state)->waiting = 0;
  state_at(place.arrays.records, state)->references =
      KLAP_EVENT_REFERENCES + 1;  // the grid's and the event's
  const unsigned long long item = event_grid(place, link, stream, KLAP_DOES_RECORD, state, 0);
  rename(place, event, state);
  return {publish(place, item, last, stream, handle), kSuccess};
}

extern "C" __device__ KlapGridQueued __klap_grid_wait_event(KlapWorkQueue* queue, unsigned long long self,
                                                            KlapGridBlock* block, unsigned long long last,
                                                            unsigned int of_stream, unsigned long long handle,
                                                            unsigned int null_stream,
                                                            unsigned long long event_handle) {
  const Place place(queue, self, block);
  const unsigned int stream = resolve(place, of_stream, handle, null_stream);
  KlapGridEvent* const event = event_of(place, event_handle);
  if (event == nullptr || !may_have_events(stream)) return {last, kInvalidValue};
  if (load_relaxed(&event->state) == 0) return {last, kSuccess};
  const unsigned int link = find_record(place), child = link == 0 ? 0 : find_record(place);
  if (child == 0) {
    if (link != 0) give_back(queue, place.arrays.records, link);
    return {last, kPendingCountExceeded};
  }
  const unsigned int state = static_cast<unsigned int>(add_global(&event->state, 1ull << 32));
  acquire(&event->state);
  event_grid(place, child, KLAP_STREAM_NONE, KLAP_DOES_NOTHING, 0, 0);
  place.at(child)->parent = link;
  const unsigned long long item = event_grid(place, link, stream, KLAP_DOES_WAIT, state, child);
  return {publish(place, item, last, stream, handle), kSuccess};
}

#endif
