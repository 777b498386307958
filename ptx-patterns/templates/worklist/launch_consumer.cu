// How the threads of a parent leave that launches in a loop, or at several places, and runs its children
// itself. Each is counted out, and the last one of its group launches the consumer (loop.cu, ordered.cu) for
// the group's records. The group is the whole grid, or a few consecutive blocks of it (work_queue_group.h).
//
// The two functions stand where those of launch_consumer.cu do and work alike, but for the consumer. It is
// not an exact grid, works off the queue by itself and leaves it empty. Any number of blocks gets through. It
// is given as many as the device could run at once, and no more than there are items.
//
// The consumer is launched into a stream without order. A thread may have made some, but not all, of its
// recorded launches itself, because the queue was full (loop_record.cu). Then the rest comes behind: the
// consumer is a tail launch, which begins when the parent and all its launches are complete.
//
// A group whose launch is refused leaves it to the last group of the grid, which alone may wait for room.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launches use.
//
// Constants: KLAP_THREADS and KLAP_SHARED_BYTES, a consumer block's threads and dynamic shared memory;
// KLAP_GROUP_BLOCKS where the grid is not the only group.
#include "common/memory_order.h"
#include "common/warp.h"
#include "worklist/work_queue_group.h"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

enum : unsigned long long { kTailLaunch = 3, kFireAndForget = 4 };  // cudaStreamTailLaunch and the other

// A launch fails while others fill the pool of pending ones. These are launches of the groups, and launches
// of the program that found no room, which may all run long. They get a minute.
static constexpr int kAttempts = 60000;
static constexpr unsigned int kPauseNanoseconds = 1000000;

// The number of threads that exit. Grids of any size come here if the grid is the only group.
static __device__ __forceinline__ unsigned long long threads_that_exit() {
#ifdef KLAP_GROUP_BLOCKS
  return threads_of_group(own_group());
#else
  return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z *
         (blockDim.x * blockDim.y * blockDim.z);
#endif
}

// Orders the writes of a group's threads before their counts, and their counts before their reads.
static __device__ __forceinline__ void fence_group() {
#if defined(KLAP_GROUP_BLOCKS) && KLAP_GROUP_BLOCKS == 1
  __threadfence_block();  // a launch takes along what its thread has seen of its block
#else
  __threadfence();
#endif
}

// Counts this thread out; 1 if it is the last of its group. As in launch_consumer.cu, threads that leave
// together share one atomic.
extern "C" __device__ unsigned int __klap_exit(KlapWorkQueue* queue) {
  const unsigned int mask = lanes_together();
  __syncwarp(mask);
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane != static_cast<unsigned int>(__ffs(mask)) - 1u) return 0;
  const unsigned long long leaving = __popc(mask);
  fence_group();
  if (add_global(&counters_of(queue)->left, leaving) + leaving != threads_that_exit()) return 0;
  fence_group();
  return 1;
}

// More blocks than a device has room for would find nothing left to do.
static __device__ __forceinline__ unsigned int most_blocks() {
  constexpr unsigned int kWarps = 64, kBlocks = 32;  // of one multiprocessor, at most
  constexpr unsigned int kFit = kWarps / ((KLAP_THREADS + 31) / 32);
  unsigned int multiprocessors;
  asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  return multiprocessors * (kFit < kBlocks ? kFit : kBlocks);
}

// `queue` is the queue that the consumer works off; `items` is the most items that it can have.
static __device__ __forceinline__ bool try_launch(KlapWorkQueue* queue, unsigned int item_capacity,
                                                  void* consumer) {
  const unsigned int items = static_cast<unsigned int>(queue->reserved >> 32);
  unsigned int blocks = items < item_capacity ? items : item_capacity;
  if (blocks > most_blocks()) blocks = most_blocks();
  void* const buffer = __klap_get_buffer(consumer, dim3(blocks), dim3(KLAP_THREADS), KLAP_SHARED_BYTES);
  if (buffer == nullptr) return false;
  *static_cast<KlapWorkQueue**>(buffer) = queue;
  const unsigned long long stream = queue->after_native == 0 ? kFireAndForget : kTailLaunch;
  return __klap_device_launch(buffer, reinterpret_cast<void*>(stream)) == 0;
}

// Called by a thread that may wait. If the device runtime keeps refusing, no thread can run these children
// any more. The program must then see an error rather than a result that lacks them.
static __device__ __forceinline__ void launch_at_last(KlapWorkQueue* queue, unsigned int item_capacity,
                                                      KlapReport* report, void* consumer) {
  int failures = 0;
#pragma unroll 1
  while (!try_launch(queue, item_capacity, consumer)) {
    if (++failures == kAttempts) {
      report_failure(report);
      __trap();
    }
    __nanosleep(kPauseNanoseconds);
  }
}

#ifdef KLAP_GROUP_BLOCKS

// Fills in the fields that the group's consumer reads of its queue; the counters stand there already.
static __device__ __forceinline__ void fill_head(KlapWorkQueue* whole, KlapWorkQueue* own) {
  own->item_capacity = items_of_group(whole);
  own->items = whole->items + first_item_of_group(whole);
  own->records = whole->records;
  own->report = whole->report;
}

// Called by the last thread of each group. It launches the group's consumer. The last of these threads also
// launches the children that others had to leave. The consumer resets the counters of its launch.
extern "C" __device__ void __klap_launch_children(KlapWorkQueue* whole, void* consumer) {
  const unsigned int items = items_of_group(whole);
  KlapWorkQueue* const own = counters_of(whole);
  own->left = 0;
  if (own->reserved != 0) {
    fill_head(whole, own);
    if (!try_launch(own, items, consumer))
      whole->groups[add_global(&whole->waiting, 1u)].waiting = own_group();
  }
  __threadfence();
  if (add_global(&whole->left, 1ull) + 1u != number_of_groups()) return;
  __threadfence();
  unsigned int waiting = whole->waiting;
  whole->waiting = 0;
  whole->left = 0;
#pragma unroll 1
  while (waiting != 0)
    launch_at_last(whole->groups + whole->groups[--waiting].waiting, items, whole->report, consumer);
}

#else

// For the last thread of the grid.
extern "C" __device__ void __klap_launch_children(KlapWorkQueue* queue, void* consumer) {
  queue->left = 0;
  if (queue->reserved != 0) launch_at_last(queue, queue->item_capacity, queue->report, consumer);
}

#endif
