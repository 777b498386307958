// The consumer that feeds itself: runs every recorded child, and the children that these record in turn,
// until none is left. Enqueued by the host right behind the parent in the same stream.
//
// It is launched with as many blocks as fit on the GPU, each of exactly the threads of the largest child. A
// block takes the number of the next item, waits until somebody has made that item ready, and runs its blocks
// of the child one after another. The numbers are given out in the order in which they were reserved, by
// threads that are running: so whoever waits, waits for a block that runs, and a single resident block gets
// through alone. Children may be of several kernels. The call of __klap_child_body_N is a marker: the code of
// the kernel with that number is spliced in there, with its parameters read from the record, its special
// registers taken from the marker's arguments, and its launches replaced by feed_record.cu. Threads that its
// block does not have wait at the barrier behind it.
//
// A child's data was written in this same kernel. It is read only behind the acquire that found its item
// ready; none of it may go through the non-coherent cache, here or in the child.
//
// Constants: KLAP_KERNELS, for every kernel KLAP_KERNEL(number, width, height, depth) with its block;
// KLAP_THREADS, of the largest of these blocks; KLAP_ARGS_OFFSET; KLAP_GRID_1D when every child's grid has
// one row and one layer; KLAP_LEAST_BLOCKS, how many blocks a multiprocessor must have registers for, unless
// that is left open; those of exits.h.
#include "exits.h"
#include "feed.h"
#include "sequence.h"

#define KLAP_KERNEL(number, width, height, depth)                                                       \
  extern "C" __device__ void __klap_child_body_##number(                                                \
      const unsigned char* arguments, unsigned int ctaid_x, unsigned int ctaid_y, unsigned int ctaid_z, \
      unsigned int nctaid_x, unsigned int nctaid_y, unsigned int nctaid_z, unsigned int tid_x,          \
      unsigned int tid_y, unsigned int tid_z);
KLAP_KERNELS
#undef KLAP_KERNEL

#ifdef KLAP_LEAST_BLOCKS
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS, KLAP_LEAST_BLOCKS)
#else
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS)
#endif

#define KLAP_KERNEL(number, width, height, depth) +1
enum : unsigned int { kKernels = KLAP_KERNELS };
#undef KLAP_KERNEL

// Waiting blocks look at their item again after this many nanoseconds, twice as many each time up to the
// longest pause: an item is found that late. A look takes 700 ns more. 2,000 blocks, as many as there are, so
// look 2 times each nanosecond, at 32 bytes of the second-level cache: 70 of the 5,000 bytes that this gives
// in the time. At the common end of all they look only every few times: that is one word, in one place.
enum : unsigned int { kShortestPause = 32, kLongestPause = 256, kLooksPerEnd = 4 };

static __device__ __forceinline__ unsigned int load_relaxed(const unsigned int* address) {
  unsigned int value;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

static __device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Nothing orders a plain store behind the relaxed one that made the item ready.
static __device__ __forceinline__ void clear(unsigned long long* item) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(item), "l"(0ull) : "memory");
}

// What stays as it is while the consumer runs. It is kept in shared memory: what the first-level cache holds
// is thrown away whenever a block of the multiprocessor looks at an item, and each item would wait for this
// anew.
struct Arrays {
  unsigned long long* items;
  unsigned char* records;
  unsigned int item_capacity;
};

// The item of that number, once it is ready; 0 if there will be no more. A taken item is cleared for the next
// use of the queue.
static __device__ __forceinline__ unsigned long long await_item(KlapFeed* feed, const Arrays& arrays,
                                                                unsigned int number) {
  const bool exists = number < arrays.item_capacity;
  unsigned long long* const at = arrays.items + number;
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for (unsigned int look = 1;; ++look) {
    // In flight at the same time as the item.
    const unsigned int is_over = look % kLooksPerEnd == 0 ? load_relaxed(&feed->done) : 0;
    if (exists) {
      const unsigned long long item = load_acquire(at);
      if (item != 0) {
        clear(at);
        return item;
      }
    }
    if (is_over != 0) return 0;
    __nanosleep(pause);
    if (pause < kLongestPause) pause *= 2;
  }
}

// The next item for this block; 0 if there will be no more. Counts off `finished` items, one or none, that
// all its threads are done with, in the same atomic. What these launched has been counted before: the threads
// did that before the barrier that led here.
static __device__ __forceinline__ unsigned long long take(KlapFeed* feed, const Arrays& arrays,
                                                          unsigned int finished) {
  const unsigned long long before = atomicAdd(&feed->turns, KLAP_FEED_TURN - finished);
  if (static_cast<unsigned int>(before) != finished)
    return await_item(feed, arrays, static_cast<unsigned int>(before >> 32));
  // Nothing is left. Others may wait only if there was something.
  if (finished != 0) asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&feed->done), "r"(1u) : "memory");
  return 0;
}

// Counts this block out, for one thread of it; the last block leaves the queue empty for the next parent. The
// second fence acquires what the others released, so that they read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapFeed* feed, unsigned int children) {
  if (children != 0) atomicAdd(&feed->children, children);
  __threadfence();
  if (atomicAdd(&feed->exited, 1u) + 1u != gridDim.x) return;
  __threadfence();
  if (feed->report != nullptr) {
    volatile unsigned long long* const report = feed->report;
    report[KLAP_REPORT_CHILDREN] += feed->children;
    report[KLAP_REPORT_NATIVE] += feed->native;
  }
  feed->reserved = 0;
  feed->turns = 0;
  feed->done = 0;
  feed->exited = 0;
  feed->children = 0;
  feed->native = 0;
}

extern "C" __global__ void KLAP_BOUNDS __klap_consumer(KlapFeed* feed) {
  __shared__ unsigned long long taken;
  __shared__ Arrays arrays;
  const unsigned int thread = threadIdx.x;
  unsigned int children = 0;  // begun by this block, in its first thread
  if (thread == 0) {
    arrays = {feed->items, feed->records, feed->item_capacity};
    taken = take(feed, arrays, 0);
  }

#pragma unroll 1
  for (;;) {
    __syncthreads();
    const unsigned long long item = taken;
    if (item == 0) break;
    const unsigned char* const record = arrays.records + KLAP_FEED_ITEM_OFFSET(item);
    const unsigned int part = KLAP_FEED_ITEM_PART(item);
    const unsigned int kernel = kKernels == 1 ? 0 : KLAP_FEED_ITEM_KERNEL(item);
    if (part == 0) ++children;

    // This part's share of the child's blocks. The grid is not read for who has just one: the child's
    // arguments would wait for it.
    Linear linear = part, count = 1;
    if (KLAP_FEED_ITEM_IS_SHARED_OUT(item)) {
      const uint4 grid = *reinterpret_cast<const uint4*>(record);
      const Linear blocks = static_cast<Linear>(grid.x) * grid.y * grid.z;
      const Linear share = blocks / KLAP_FEED_PARTS;
      const unsigned int rest = static_cast<unsigned int>(blocks % KLAP_FEED_PARTS);
      linear = part * share + (part < rest ? part : rest);
      count = share + (part < rest ? 1u : 0u);
    }
#pragma unroll 1
    for (; count != 0; --count, ++linear) {
      const uint4 size = *reinterpret_cast<const uint4*>(record);
      const uint3 at = position_in(size, linear);
#define KLAP_KERNEL(number, width, height, depth)                                                   \
  if (kernel == number &&                                                                           \
      ((width) * (height) * (depth) == KLAP_THREADS || thread < (width) * (height) * (depth)))      \
    __klap_child_body_##number(record + KLAP_ARGS_OFFSET, at.x, at.y, at.z, size.x, size.y, size.z, \
                               (height) * (depth) == 1 ? thread : thread % (width),                 \
                               (height) == 1 ? 0 : thread / (width) % (height),                     \
                               (depth) == 1 ? 0 : thread / ((width) * (height)));
      KLAP_KERNELS
#undef KLAP_KERNEL
      // For what the child's next block shares, and for retiring after the last one.
      end_child_block();
    }
    if (thread == 0) taken = take(feed, arrays, 1);
  }
  if (thread == 0) leave(feed, children);
}
