// A kernel whose launches keep an order runs this at its launch sites.
//
// As in worklist_record.cu, __klap_loop_reserve() replaces the request for an argument buffer and
// __klap_loop_publish() the launch. `scope` says whose order the launch keeps. A thread's last record is in
// a register, `last`, which is kept from one launch to the next, at whichever site. The last record of a
// block is in a word of shared memory, `last_of_block`.
//
// The word is exchanged at the launch itself. So a launch that the program orders behind another one by any
// synchronisation comes behind it here as well. Lanes that launch in one instruction have no order; they take
// that of their numbers and share one exchange. The exchange releases the thread's writes to its record. It
// acquires the record before it, whose link to the one behind is then written.
//
// If the queue is full, a thread makes its recorded launches itself before the program's own launch runs. The
// device runtime may refuse one of them, because too many wait already. Then the rest stays recorded, and the
// program's launch is refused with that error, as natively when no more launches fit. Nothing is out of
// order, because the launches that were made are complete before the consumer begins. A consumer that the
// host launches comes behind all of the parent. A parent that launches it itself is told (KlapWorkQueue's
// after_native). A launch that keeps its block's order is refused at once, and so are all launches if groups
// of blocks launch apart. Each of them would need a tail launch, and tail launches hold the places that other
// launches wait for.
//
// A grid of many blocks is launched faster by CUDA than by the consumer, whose blocks run its blocks one
// after another. So a thread in whose order nothing is recorded yet makes such launches itself.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launch uses.
//
// Constants: those of worklist_record.cu; KLAP_KERNELS, for every kernel that the sites launch
// KLAP_KERNEL(number, width, height, depth, shared, arguments) with its block and the bytes of its dynamic
// shared memory and its parameters.
#include "loop_launches/loop_records.h"

// worklist_record.cu defines functions for a kernel that are parts of a function here. One launch waits for
// the one before it. So one trip to memory less is worth more than a counter that stays near its value.
#define KLAP_ORDERED
extern "C" __device__ __forceinline__ unsigned long long __klap_reserve(KlapWorkQueue* queue,
                                                                        unsigned int grid_x,
                                                                        unsigned int grid_y,
                                                                        unsigned int grid_z);
#include "worklist/worklist_record.cu"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

// Words of 64 bits: the compiler would store smaller ones together.
struct KlapLoopRoom {
  unsigned long long arguments;  // where to store the child's arguments; 0: the launch is the program's own
  unsigned long long last;
  unsigned long long refused;  // the program gets no buffer
};

static __device__ __forceinline__ KlapLoopRecord* record_of_link(KlapWorkQueue* queue, unsigned int link) {
  return reinterpret_cast<KlapLoopRecord*>(queue->records + KLAP_WORK_ITEM_OFFSET(link));
}

// The program's launch gets no buffer, as from CUDA. It was counted as one that the program makes itself.
static __device__ __forceinline__ KlapLoopRoom refuse(KlapWorkQueue* queue, unsigned long long last) {
  atomicSub(&counters_of(queue)->native, 1u);
  return {0, last, 1};
}

#ifndef KLAP_GROUP_BLOCKS

// Turns the links of a sequence around; returns its other end.
static __device__ __forceinline__ unsigned int turn_around(KlapWorkQueue* queue, unsigned int link) {
  unsigned int behind = KLAP_LINK_NONE;
#pragma unroll 1
  while (link != KLAP_LINK_NONE) {
    KlapLoopRecord* const record = record_of_link(queue, link);
    const unsigned int next = record->before;
    record->before = behind;
    behind = link;
    link = next;
  }
  return behind;
}

// Makes a recorded launch. False where it is refused.
static __device__ __forceinline__ bool launch_now(const KlapLoopRecord* record) {
  void* const child = reinterpret_cast<void*>(record->child);
  const unsigned int kernel = record->kernel;
  dim3 block;
  unsigned int shared_bytes = 0, argument_bytes = 0;
#define KLAP_KERNEL(number, width, height, depth, shared, arguments) \
  if (kernel == number) {                                            \
    block = dim3(width, height, depth);                              \
    shared_bytes = shared;                                           \
    argument_bytes = arguments;                                      \
  }
  KLAP_KERNELS
#undef KLAP_KERNEL
  void* const buffer =
      __klap_get_buffer(child, dim3(record->grid_x, record->grid_y, record->grid_z), block, shared_bytes);
  if (buffer == nullptr) return false;
  const unsigned char* const from = reinterpret_cast<const unsigned char*>(record) + KLAP_ARGS_OFFSET;
#pragma unroll 1
  for (unsigned int i = 0; i < argument_bytes; ++i) static_cast<unsigned char*>(buffer)[i] = from[i];
  return __klap_device_launch(buffer, reinterpret_cast<void*>(record->stream)) == 0;
}

// Makes the launches of a sequence that ends with `last`, the first one first. Returns the last one that is
// still recorded.
static __device__ __forceinline__ unsigned int take_back(KlapWorkQueue* queue, unsigned int last) {
  unsigned int link = turn_around(queue, last);
  unsigned int launched = 0;
#pragma unroll 1
  while (link != KLAP_LINK_NONE) {
    KlapLoopRecord* const record = record_of_link(queue, link);
    if (!launch_now(record)) break;
    record->grid_x = 0;
    link = record->before;
    ++launched;
  }
  if (launched != 0) add_global(&counters_of(queue)->native, launched);
  if (launched != 0 && link != KLAP_LINK_NONE)
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&counters_of(queue)->after_native) : "memory");
  return turn_around(queue, link);
}

// The queue has no room for a launch in its thread's order: the thread takes its records back.
static __device__ __forceinline__ KlapLoopRoom without_room(KlapWorkQueue* queue, unsigned long long last) {
  const unsigned int left = take_back(queue, static_cast<unsigned int>(last));
  return left == KLAP_LINK_NONE ? KlapLoopRoom{0, KLAP_LINK_NATIVE, 0} : refuse(queue, left);
}

#endif

#ifndef KLAP_GROUP_BLOCKS

// A thread that has recorded nothing makes large launches itself. Its later ones are recorded, and run when
// those are complete. `last` counts them in its high half.
static __device__ __forceinline__ bool is_made_at_once(unsigned int grid_x, unsigned int grid_y,
                                                       unsigned int grid_z, unsigned long long last) {
  const bool is_large = static_cast<unsigned long long>(grid_x) * grid_y * grid_z >= KLAP_LARGE_GRID;
  return is_large && static_cast<unsigned int>(last) == KLAP_LINK_NONE &&
         (last >> 32) < KLAP_MOST_LARGE_LAUNCHES;
}

#endif

extern "C" __device__ KlapLoopRoom __klap_loop_reserve(KlapWorkQueue* queue, unsigned int grid_x,
                                                       unsigned int grid_y, unsigned int grid_z,
                                                       unsigned long long last, void* child,
                                                       unsigned int scope) {
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
  if (last == KLAP_LINK_NATIVE && scope == KLAP_SCOPE_THREAD) {
    if (!refused) add_global(&counters_of(queue)->native, 1u);
    return {0, last, 0};
  }
#ifndef KLAP_GROUP_BLOCKS
  if (scope == KLAP_SCOPE_THREAD && !refused && is_made_at_once(grid_x, grid_y, grid_z, last)) {
    add_global(&counters_of(queue)->native, 1u);
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&counters_of(queue)->after_native) : "memory");
    return {0, last + (1ull << 32), 0};
  }
#endif
  const unsigned long long arguments = __klap_reserve(queue, grid_x, grid_y, grid_z);
  if (arguments != 0) {
    KlapLoopRecord* const record = reinterpret_cast<KlapLoopRecord*>(arguments - KLAP_ARGS_OFFSET);
    record->child = reinterpret_cast<unsigned long long>(child);
  }
  if (arguments != 0 || refused || scope == KLAP_SCOPE_NONE) return {arguments, last, 0};
#ifdef KLAP_GROUP_BLOCKS
  return refuse(queue, last);
#else
  if (scope == KLAP_SCOPE_BLOCK) return refuse(queue, last);
  return without_room(queue, last);
#endif
}

// The record before `link` among all that its block launches. Its neighbours in the warp that launch in this
// very instruction come before and behind it.
static __device__ __forceinline__ unsigned int append_to_block(KlapWorkQueue* queue,
                                                               unsigned int* last_of_block,
                                                               unsigned int link) {
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int lower = mask & ((1u << lane) - 1u), higher = mask & ~((2u << lane) - 1u);
  const unsigned int lowest = static_cast<unsigned int>(__ffs(mask)) - 1u, highest = 31u - __clz(mask);
  const unsigned int first = __shfl_sync(mask, link, lowest);
  const unsigned int previous = __shfl_sync(mask, link, lower != 0 ? 31u - __clz(lower) : lane);
  const unsigned int next = __shfl_sync(mask, link, higher != 0 ? __ffs(higher) - 1u : lane);
  record_of_link(queue, link)->behind = higher != 0 ? next : KLAP_LINK_NONE;
  unsigned int before = KLAP_LINK_NONE;
  if (lane == highest) {
    before = exchange_in_block(last_of_block, link);
    if (before != KLAP_LINK_NONE) record_of_link(queue, before)->behind = first;
  }
  before = __shfl_sync(mask, before, highest);
  return lower != 0 ? previous : before;
}

// Appends a record to those of the thread.
static __device__ __forceinline__ unsigned int append_to_thread(KlapWorkQueue* queue, unsigned long long last,
                                                                unsigned int link) {
  const unsigned int before = static_cast<unsigned int>(last);
  record_of_link(queue, link)->behind = KLAP_LINK_NONE;
  if (before != KLAP_LINK_NONE) record_of_link(queue, before)->behind = link;
  return before;
}

// Makes the first launch of a sequence ready. Lanes that are converged here share the atomics.
static __device__ __forceinline__ void publish_first(KlapWorkQueue* queue, unsigned long long first,
                                                     unsigned int items) {
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int inclusive = sum_of_items(items, mask, lane);
  const unsigned int last = 31u - __clz(mask);
  KlapWorkQueue* const counters = counters_of(queue);
  unsigned int slot = 0;
  if (lane == last) {
    slot = add_global(&counters->published, inclusive);
    add_global(&counters->turns, static_cast<unsigned long long>(inclusive));
  }
  slot = __shfl_sync(mask, slot, last) + inclusive - items;
  publish({queue->items + first_item_of_group(queue) + slot, first, items});
}

// `arguments` is the result of __klap_loop_reserve(). Returns the thread's new last record.
extern "C" __device__ unsigned long long __klap_loop_publish(
    KlapWorkQueue* queue, unsigned long long arguments, unsigned long long last, unsigned long long stream,
    unsigned int kernel, unsigned int* last_of_block, unsigned int scope) {
  KlapLoopRecord* const record = reinterpret_cast<KlapLoopRecord*>(arguments - KLAP_ARGS_OFFSET);
  const Publication what = publication(queue, arguments, kernel);
  const unsigned int link = static_cast<unsigned int>(what.first);
  record->unfinished = what.items;
  record->kernel = kernel;
  record->stream = stream;
  unsigned int before = KLAP_LINK_NONE;
  if (scope == KLAP_SCOPE_BLOCK) {
    before = append_to_block(queue, last_of_block, link);
  } else if (scope == KLAP_SCOPE_THREAD) {
    before = append_to_thread(queue, last, link);
  } else {
    record->behind = KLAP_LINK_NONE;
  }
  record->before = before;
  if (before == KLAP_LINK_NONE) publish_first(queue, what.first, what.items);
  return scope == KLAP_SCOPE_THREAD ? link : last;
}
