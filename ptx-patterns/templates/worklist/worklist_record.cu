// A kernel whose children launch again runs this at its launch site, in the parent that the host launches and
// in the children that the consumer runs (worklist.cu).
//
// __klap_reserve() replaces the request for an argument buffer. It takes a record for the child and items for
// its blocks, with one atomic for all lanes that are converged here. No address means that the child was not
// recorded, because the queue is full or because CUDA refuses the grid. Then the program's own launch runs,
// with its native effects and error codes. __klap_publish() replaces the launch. Only now, behind the
// program's argument stores, may a block take the items.
//
// Constants: KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES, the layout of the records; KLAP_GROUP_BLOCKS if groups
// of the parent's blocks launch apart; KLAP_RECURSIVE if the consumer is that of worklist.cu, and its work is
// counted; KLAP_ORDERED if launches keep an order (loop_record.cu). `kernel` is the child's number in the
// consumer.
#include "common/memory_order.h"
#include "common/warp.h"
#include "worklist/record_places.h"
#include "worklist/work_queue_group.h"

static __device__ __forceinline__ unsigned int worklist_items(unsigned long long blocks) {
  return blocks < KLAP_WORK_PARTS ? static_cast<unsigned int>(blocks) : KLAP_WORK_PARTS;
}

// The capacity of the thread's group. It is read before the atomic, so that nothing waits for it then.
struct Capacity {
  unsigned int records, items;
};

static __device__ __forceinline__ Capacity capacity_of_group(const KlapWorkQueue* queue) {
  return {records_of_group(queue), items_of_group(queue)};
}

static __device__ __forceinline__ bool is_used_up(const Capacity& capacity, unsigned long long reserved) {
  return static_cast<unsigned int>(reserved) >= capacity.records || (reserved >> 32) >= capacity.items;
}

#if defined(KLAP_RECURSIVE) || defined(KLAP_ORDERED)

// Adds to both halves. Returns the numbers before, or that one half is used up. In the latter case it goes on
// only when both have been set to that, because the exchange returns a value.
static __device__ __forceinline__ unsigned long long reserve(KlapWorkQueue* queue, const Capacity& capacity,
                                                             unsigned int records, unsigned int items) {
  unsigned long long* const reserved = &counters_of(queue)->reserved;
  const unsigned long long before = add_global(reserved, KLAP_WORK_USED_UP(records, items));
  if (!is_used_up(capacity, before)) return before;
  return exchange_global(reserved, KLAP_WORK_USED_UP(capacity.records, capacity.items));
}

#else

// Adds to both halves unless one is used up, in which case it says so without adding.
static __device__ __forceinline__ unsigned long long reserve(KlapWorkQueue* queue, const Capacity& capacity,
                                                             unsigned int records, unsigned int items) {
  unsigned long long* const reserved = &counters_of(queue)->reserved;
  const unsigned long long seen = load_relaxed(reserved);
  if (is_used_up(capacity, seen)) return seen;
  return add_global(reserved, static_cast<unsigned long long>(items) << 32 | records);
}

#endif

// Sum of the lanes' items up to this lane's. Children of one block each are the usual ones.
static __device__ __forceinline__ unsigned int sum_of_items(unsigned int items, unsigned int mask,
                                                            unsigned int lane) {
  if (__all_sync(mask, items == 1u)) return __popc(mask & ((2u << lane) - 1u));
  return inclusive_sum(items, mask, lane);
}

extern "C" __device__ unsigned long long __klap_reserve(KlapWorkQueue* queue, unsigned int grid_x,
                                                        unsigned int grid_y, unsigned int grid_z) {
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
  const unsigned long long blocks =
      refused ? 0ull : static_cast<unsigned long long>(grid_x) * grid_y * grid_z;
  const unsigned int items = worklist_items(blocks);
  const Capacity capacity = capacity_of_group(queue);

  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int recording = __ballot_sync(mask, !refused);
  const unsigned int inclusive = sum_of_items(items, mask, lane);
  const unsigned int last = 31u - __clz(mask);
  unsigned long long base = 0;
  if (lane == last) base = reserve(queue, capacity, __popc(recording), inclusive);
  base = __shfl_sync(mask, base, last);
  const unsigned int record = static_cast<unsigned int>(base) + __popc(recording & ((1u << lane) - 1u));
  const unsigned int item = static_cast<unsigned int>(base >> 32) + inclusive - items;
  const bool fits = !refused && record < capacity.records &&
                    static_cast<unsigned long long>(item) + items <= capacity.items;

#ifdef KLAP_RECURSIVE
  // Children that fit come first: the last of them has the sum of their items. It counts the items before any
  // of its neighbours can publish theirs. Otherwise items might be counted off sooner than they were counted.
  const unsigned int fitting = __ballot_sync(mask, fits);
  if (fits && lane == 31u - __clz(fitting))
    add_global(&counters_of(queue)->turns, static_cast<unsigned long long>(inclusive));
  __syncwarp(mask);
#endif
  if (!fits) {
    if (!refused) add_global(&counters_of(queue)->native, 1u);
    return 0;
  }
  const unsigned int number = first_record_of_group(queue) + record;
  unsigned char* const at = queue->records + static_cast<unsigned long long>(number) * KLAP_RECORD_BYTES +
                            place_of_part(queue->places, number) * KLAP_WORK_UNIT;
  *reinterpret_cast<uint4*>(at) = make_uint4(grid_x, grid_y, grid_z, item);
  return reinterpret_cast<unsigned long long>(at + KLAP_ARGS_OFFSET);
}

// The data for publishing a child: the word of its first item, the address for it, and the number of items.
struct Publication {
  unsigned long long* at;
  unsigned long long first;
  unsigned int items;
};

// `arguments` is the result of __klap_reserve(), which has written the grid there.
static __device__ __forceinline__ Publication publication(const KlapWorkQueue* queue,
                                                          unsigned long long arguments, unsigned int kernel) {
  const unsigned char* const record = reinterpret_cast<const unsigned char*>(arguments) - KLAP_ARGS_OFFSET;
  const uint4 head = *reinterpret_cast<const uint4*>(record);
  const unsigned long long blocks = static_cast<unsigned long long>(head.x) * head.y * head.z;
  unsigned long long first = KLAP_WORK_ITEM(kernel, record - queue->records, 0);
  if (blocks > KLAP_WORK_PARTS) first |= KLAP_WORK_SHARED_OUT;
  return {queue->items + first_item_of_group(queue) + head.w, first, worklist_items(blocks)};
}

static __device__ __forceinline__ void publish(const Publication& child) {
#pragma unroll 1
  for (unsigned int part = 0; part < child.items; ++part)
    store_relaxed(child.at + part, child.first + KLAP_WORK_ITEM_STEP * part);
}

// In the parent, which is complete before the consumer begins.
extern "C" __device__ void __klap_publish(KlapWorkQueue* queue, unsigned long long arguments,
                                          unsigned int kernel) {
  publish(publication(queue, arguments, kernel));
}

// In a child, whose children may begin immediately. The fence releases the record, the arguments and all else
// that this thread may show its child. All that has to be read for that is read before: behind the fence the
// first-level cache holds nothing.
extern "C" __device__ void __klap_publish_now(KlapWorkQueue* queue, unsigned long long arguments,
                                              unsigned int kernel) {
  const Publication child = publication(queue, arguments, kernel);
  release();
  publish(child);
}
