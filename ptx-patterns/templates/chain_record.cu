// What a kernel that launches in a loop does at its launch sites, where one thread's launches must keep their
// order.
//
// As in feed_record.cu, __klap_chain_reserve() stands in place of the request for an argument buffer and
// __klap_chain_publish() in place of the launch. `last` is the thread's last record, which a register keeps
// from one launch to the next, at whichever site. A launch that is `alone` has no order: it neither waits nor
// is waited for.
//
// Where the queue is full, the thread makes its recorded launches itself before the program's own launch
// runs. The device runtime may refuse one of them, because too many wait already: then what is left stays
// recorded, the program's launch is refused with that same error, as natively when no more launches fit, and
// nothing is out of order, because what was launched is complete before the consumer begins: one that the
// host launches comes behind all of the parent, and a parent that launches it itself is told (KlapFeed's
// after_native).
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launch uses.
//
// Constants: those of feed_record.cu; KLAP_KERNELS, for every kernel that the sites launch
// KLAP_KERNEL(number, width, height, depth, shared, arguments) with its block and the bytes of its dynamic
// shared memory and its parameters; KLAP_SEVERAL_KERNELS where it is not one.
#include "chain.h"

// What feed_record.cu defines for a kernel is part of a function here.
extern "C" __device__ __forceinline__ unsigned long long __klap_reserve(KlapFeed* feed, unsigned int grid_x,
                                                                        unsigned int grid_y,
                                                                        unsigned int grid_z);
#include "feed_record.cu"

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
static __device__ __forceinline__ bool launch_now(const KlapChained* record, void* child) {
#ifdef KLAP_SEVERAL_KERNELS
  child = reinterpret_cast<void*>(record->child);
  const unsigned int kernel = record->kernel;
#else
  const unsigned int kernel = 0;
#endif
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
static __device__ __forceinline__ unsigned int take_back(KlapFeed* feed, unsigned int last, void* child) {
  unsigned int link = turn_around(feed, last);
  unsigned int launched = 0;
#pragma unroll 1
  while (link != KLAP_CHAIN_NONE) {
    KlapChained* const record = chained(feed, link);
    if (!launch_now(record, child)) break;
    record->grid_x = 0;
    link = record->before;
    ++launched;
  }
  if (launched != 0) atomicAdd(&counters_of(feed)->native, launched);
  if (launched != 0 && link != KLAP_CHAIN_NONE)
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&counters_of(feed)->after_native) : "memory");
  return turn_around(feed, link);
}

// What a record must say of its launch for it to be taken back.
static __device__ __forceinline__ void describe(unsigned long long arguments, void* child,
                                                unsigned int kernel) {
#ifdef KLAP_SEVERAL_KERNELS
  KlapChained* const record = reinterpret_cast<KlapChained*>(arguments - KLAP_ARGS_OFFSET);
  record->child = reinterpret_cast<unsigned long long>(child);
  record->kernel = kernel;
#endif
}

// The queue has no room, so the thread takes its records back. `child` is that of its next launch.
static __device__ __forceinline__ KlapChainRoom without_room(KlapFeed* feed, unsigned long long last,
                                                             void* child) {
  const unsigned int left = take_back(feed, static_cast<unsigned int>(last), child);
  if (left == KLAP_CHAIN_NONE) return {0, KLAP_CHAIN_NATIVE, 0};
  return {0, left, 1};
}

extern "C" __device__ KlapChainRoom __klap_chain_reserve(KlapFeed* feed, unsigned int grid_x,
                                                         unsigned int grid_y, unsigned int grid_z,
                                                         unsigned long long last, void* child,
                                                         unsigned int kernel, unsigned int alone) {
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
  if (last == KLAP_CHAIN_NATIVE && alone == 0) {
    if (!refused) atomicAdd(&counters_of(feed)->native, 1u);
    return {0, last, 0};
  }
  const unsigned long long arguments = __klap_reserve(feed, grid_x, grid_y, grid_z);
  if (arguments != 0) describe(arguments, child, kernel);
  if (arguments != 0 || refused || alone != 0) return {arguments, last, 0};
  return without_room(feed, last, child);
}

// `arguments` is what __klap_chain_reserve() returned. Returns the new last record.
extern "C" __device__ unsigned long long __klap_chain_publish(KlapFeed* feed, unsigned long long arguments,
                                                              unsigned long long last,
                                                              unsigned long long stream, unsigned int kernel,
                                                              unsigned int alone) {
  KlapChained* const record = reinterpret_cast<KlapChained*>(arguments - KLAP_ARGS_OFFSET);
  const unsigned int before = alone != 0 ? KLAP_CHAIN_NONE : static_cast<unsigned int>(last);
  record->before = before;
  record->unfinished = 0;
  record->stream = stream;
  if (before != KLAP_CHAIN_NONE) {
    KlapChained* const other = chained(feed, before);
    other->unfinished =
        feed_items(static_cast<unsigned long long>(other->grid_x) * other->grid_y * other->grid_z);
  }
  publish(publication(feed, arguments, kernel));
  if (alone != 0) return last;
  return static_cast<unsigned int>(
      KLAP_FEED_ITEM(0, reinterpret_cast<unsigned char*>(record) - feed->records, 0));
}
