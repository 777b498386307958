// A kernel whose launches keep an order runs this at its launch sites.
//
// As in feed_record.cu, __klap_chain_reserve() replaces the request for an argument buffer and
// __klap_chain_publish() the launch. `scope` says whose order the launch keeps. A thread's last record is in
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
// host launches comes behind all of the parent. A parent that launches it itself is told (KlapFeed's
// after_native). A launch that keeps its block's order is refused at once, and so are all launches if groups
// of blocks launch apart. Each of them would need a tail launch, and tail launches hold the places that other
// launches wait for.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launch uses.
//
// Constants: those of feed_record.cu; KLAP_KERNELS, for every kernel that the sites launch
// KLAP_KERNEL(number, width, height, depth, shared, arguments) with its block and the bytes of its dynamic
// shared memory and its parameters.
#include "loop_launches/chain.h"

// feed_record.cu defines functions for a kernel that are parts of a function here. One launch waits for the
// one before it. So one trip to memory less is worth more than a counter that stays near its value.
#define KLAP_ORDERED
extern "C" __device__ __forceinline__ unsigned long long __klap_reserve(KlapFeed* feed, unsigned int grid_x,
                                                                        unsigned int grid_y,
                                                                        unsigned int grid_z);
#include "worklist/feed_record.cu"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

// Words of 64 bits: the compiler would store smaller ones together.
struct KlapChainRoom {
  unsigned long long arguments;  // where to store the child's arguments; 0: the launch is the program's own
  unsigned long long last;
  unsigned long long refused;  // the program gets no buffer
};

static __device__ __forceinline__ KlapChained* chained(KlapFeed* feed, unsigned int link) {
  return reinterpret_cast<KlapChained*>(feed->records + KLAP_FEED_ITEM_OFFSET(link));
}

// The program's launch gets no buffer, as from CUDA. It was counted as one that the program makes itself.
static __device__ __forceinline__ KlapChainRoom refuse(KlapFeed* feed, unsigned long long last) {
  atomicSub(&counters_of(feed)->native, 1u);
  return {0, last, 1};
}

#ifndef KLAP_GROUP_BLOCKS

// Turns the links of a chain around; returns its other end.
static __device__ __forceinline__ unsigned int turn_around(KlapFeed* feed, unsigned int link) {
  unsigned int behind = KLAP_CHAIN_NONE;
#pragma unroll 1
  while (link != KLAP_CHAIN_NONE) {
    KlapChained* const record = chained(feed, link);
    const unsigned int next = record->before;
    record->before = behind;
    behind = link;
    link = next;
  }
  return behind;
}

// Makes a recorded launch. False where it is refused.
static __device__ __forceinline__ bool launch_now(const KlapChained* record) {
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

// Makes the launches of a chain that ends with `last`, the first one first. Returns the last one that is
// still recorded.
static __device__ __forceinline__ unsigned int take_back(KlapFeed* feed, unsigned int last) {
  unsigned int link = turn_around(feed, last);
  unsigned int launched = 0;
#pragma unroll 1
  while (link != KLAP_CHAIN_NONE) {
    KlapChained* const record = chained(feed, link);
    if (!launch_now(record)) break;
    record->grid_x = 0;
    link = record->before;
    ++launched;
  }
  if (launched != 0) atomicAdd(&counters_of(feed)->native, launched);
  if (launched != 0 && link != KLAP_CHAIN_NONE)
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&counters_of(feed)->after_native) : "memory");
  return turn_around(feed, link);
}

// The queue has no room for a launch in its thread's order: the thread takes its records back.
static __device__ __forceinline__ KlapChainRoom without_room(KlapFeed* feed, unsigned long long last) {
  const unsigned int left = take_back(feed, static_cast<unsigned int>(last));
  return left == KLAP_CHAIN_NONE ? KlapChainRoom{0, KLAP_CHAIN_NATIVE, 0} : refuse(feed, left);
}

#endif

extern "C" __device__ KlapChainRoom __klap_chain_reserve(KlapFeed* feed, unsigned int grid_x,
                                                         unsigned int grid_y, unsigned int grid_z,
                                                         unsigned long long last, void* child,
                                                         unsigned int scope) {
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
  if (last == KLAP_CHAIN_NATIVE && scope == KLAP_SCOPE_THREAD) {
    if (!refused) atomicAdd(&counters_of(feed)->native, 1u);
    return {0, last, 0};
  }
  const unsigned long long arguments = __klap_reserve(feed, grid_x, grid_y, grid_z);
  if (arguments != 0) {
    KlapChained* const record = reinterpret_cast<KlapChained*>(arguments - KLAP_ARGS_OFFSET);
    record->child = reinterpret_cast<unsigned long long>(child);
  }
  if (arguments != 0 || refused || scope == KLAP_SCOPE_NONE) return {arguments, last, 0};
#ifdef KLAP_GROUP_BLOCKS
  return refuse(feed, last);
#else
  if (scope == KLAP_SCOPE_BLOCK) return refuse(feed, last);
  return without_room(feed, last);
#endif
}

// The order is that of the whole block: one thread sees the writes of the other.
static __device__ __forceinline__ unsigned int exchange(unsigned int* word, unsigned int value) {
  unsigned int before;
  asm volatile("atom.acq_rel.cta.shared.exch.b32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_shared(word)), "r"(value)
               : "memory");
  return before;
}

// The record before `link` among all that its block launches. Its neighbours in the warp that launch in this
// very instruction come before and behind it.
static __device__ __forceinline__ unsigned int append_to_block(KlapFeed* feed, unsigned int* last_of_block,
                                                               unsigned int link) {
  const unsigned int mask = __activemask();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int lower = mask & ((1u << lane) - 1u), higher = mask & ~((2u << lane) - 1u);
  const unsigned int lowest = static_cast<unsigned int>(__ffs(mask)) - 1u, highest = 31u - __clz(mask);
  const unsigned int first = __shfl_sync(mask, link, lowest);
  const unsigned int previous = __shfl_sync(mask, link, lower != 0 ? 31u - __clz(lower) : lane);
  const unsigned int next = __shfl_sync(mask, link, higher != 0 ? __ffs(higher) - 1u : lane);
  chained(feed, link)->behind = higher != 0 ? next : KLAP_CHAIN_NONE;
  unsigned int before = KLAP_CHAIN_NONE;
  if (lane == highest) {
    before = exchange(last_of_block, link);
    if (before != KLAP_CHAIN_NONE) chained(feed, before)->behind = first;
  }
  before = __shfl_sync(mask, before, highest);
  return lower != 0 ? previous : before;
}

// Appends a record to those of the thread.
static __device__ __forceinline__ unsigned int append_to_thread(KlapFeed* feed, unsigned long long last,
                                                                unsigned int link) {
  const unsigned int before = static_cast<unsigned int>(last);
  chained(feed, link)->behind = KLAP_CHAIN_NONE;
  if (before != KLAP_CHAIN_NONE) chained(feed, before)->behind = link;
  return before;
}

// Makes the first launch of a chain ready. Lanes that are converged here share the atomics.
static __device__ __forceinline__ void publish_first(KlapFeed* feed, unsigned long long first,
                                                     unsigned int items) {
  const unsigned int mask = __activemask();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int inclusive = sum_of_items(items, mask, lane);
  const unsigned int last = 31u - __clz(mask);
  KlapFeed* const counters = counters_of(feed);
  unsigned int slot = 0;
  if (lane == last) {
    slot = atomicAdd(&counters->published, inclusive);
    atomicAdd(&counters->turns, static_cast<unsigned long long>(inclusive));
  }
  slot = __shfl_sync(mask, slot, last) + inclusive - items;
  publish({feed->items + first_item_of_group(feed) + slot, first, items});
}

// `arguments` is the result of __klap_chain_reserve(). Returns the thread's new last record.
extern "C" __device__ unsigned long long __klap_chain_publish(KlapFeed* feed, unsigned long long arguments,
                                                              unsigned long long last,
                                                              unsigned long long stream, unsigned int kernel,
                                                              unsigned int* last_of_block,
                                                              unsigned int scope) {
  KlapChained* const record = reinterpret_cast<KlapChained*>(arguments - KLAP_ARGS_OFFSET);
  const Publication what = publication(feed, arguments, kernel);
  const unsigned int link = static_cast<unsigned int>(what.first);
  record->unfinished = what.items;
  record->kernel = kernel;
  record->stream = stream;
  unsigned int before = KLAP_CHAIN_NONE;
  if (scope == KLAP_SCOPE_BLOCK) {
    before = append_to_block(feed, last_of_block, link);
  } else if (scope == KLAP_SCOPE_THREAD) {
    before = append_to_thread(feed, last, link);
  } else {
    record->behind = KLAP_CHAIN_NONE;
  }
  record->before = before;
  if (before == KLAP_CHAIN_NONE) publish_first(feed, what.first, what.items);
  return scope == KLAP_SCOPE_THREAD ? link : last;
}
