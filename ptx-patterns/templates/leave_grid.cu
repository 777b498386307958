// How the threads of a recording parent leave when the parent launches its children itself: each is counted
// out, and the last one of the grid launches all recorded children as an exact grid (exact.cu).
//
// Two functions. __klap_leave() is spliced in front of every way out of the parent and says whether this
// thread is the last; __klap_launch_children() stands once at the parent's end and is reached by that thread
// alone. Threads are counted, not blocks: a block can lose threads to early returns long before the rest is
// done, and waiting for them at a barrier could block threads that will never come.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launch used.
//
// Constants: KLAP_CHILD_X, _Y, _Z, the child's block; KLAP_CHILD_SHARED_BYTES, its dynamic shared memory;
// KLAP_RECORD_BYTES.
#include "queue.h"
#include "sequence.h"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

// Children need no order among themselves, and the parent's grid is complete only when all it launched is, so
// the stream without any order will do.
static constexpr unsigned long long kFireAndForget = 4;  // cudaStreamFireAndForget
static constexpr unsigned int kLargestGrid = 0x7fffffffu;
// A launch fails while other kernels' launches fill the pool of pending ones. About a second of waiting.
static constexpr int kAttempts = 1000;
static constexpr unsigned int kPauseNanoseconds = 1000000;

// Counts this thread out; 1 if it is the last of its grid. The threads that leave together share one atomic.
// What they wrote is released with it (the warp's lanes to their leader by __syncwarp, the leader's view to
// the GPU by the fence), and the last one acquires what all others released.
extern "C" __device__ unsigned int __klap_leave(KlapQueue* queue) {
  const unsigned int mask = __activemask();
  __syncwarp(mask);
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane != static_cast<unsigned int>(__ffs(mask)) - 1u) return 0;
  const unsigned int leaving = __popc(mask);
  // At most KLAP_MAX_RECORDS: the host launches larger grids natively.
  const unsigned int threads = gridDim.x * gridDim.y * gridDim.z * (blockDim.x * blockDim.y * blockDim.z);
  __threadfence();
  if (atomicAdd(&queue->exited, leaving) + leaving != threads) return 0;
  __threadfence();
  return 1;
}

static __device__ __forceinline__ bool try_launch(void* consumer, const KlapSequence& part,
                                                  unsigned int blocks) {
  void* const buffer = __klap_get_buffer(
      consumer, dim3(blocks), dim3(KLAP_CHILD_X, KLAP_CHILD_Y, KLAP_CHILD_Z), KLAP_CHILD_SHARED_BYTES);
  if (buffer == nullptr) return false;
  *static_cast<KlapSequence*>(buffer) = part;
  return __klap_device_launch(buffer, reinterpret_cast<void*>(kFireAndForget)) == 0;
}

// Runs the blocks of a whole sequence. If the device runtime keeps refusing, these children can no longer be
// run by anyone: the program must see an error rather than a result that lacks them.
static __device__ __forceinline__ void launch_sequence(KlapQueue* queue, void* consumer, KlapSequence part,
                                                       unsigned long long blocks) {
  int failures = 0;
#pragma unroll 1
  while (part.first < blocks) {
    const unsigned long long rest = blocks - part.first;
    const unsigned int grid = rest < kLargestGrid ? static_cast<unsigned int>(rest) : kLargestGrid;
    if (try_launch(consumer, part, grid)) {
      part.first += grid;
    } else if (++failures < kAttempts) {
      __nanosleep(kPauseNanoseconds);
    } else {
      if (queue->report != nullptr) {
        reinterpret_cast<volatile unsigned long long*>(queue->report)[KLAP_REPORT_FAILURES] = 1;
        __threadfence_system();
      }
      __trap();
    }
  }
}

// The children with records at the far end have no prefix yet. Each keeps the GPU busy for longer than a step
// of this loop takes. Returns how many blocks they have together.
static __device__ __forceinline__ unsigned long long number_big_children(const KlapQueue* queue,
                                                                         unsigned int begin) {
  unsigned long long blocks = 0;
#pragma unroll 1
  for (unsigned int i = begin; i < queue->capacity; ++i) {
    const uint4 grid = *reinterpret_cast<const uint4*>(queue->records + static_cast<unsigned long long>(i) *
                                                                            KLAP_RECORD_BYTES);
    queue->prefix[i] = blocks;
    blocks += static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
  }
  return blocks;
}

// For the last thread of the grid: takes everything out of the queue, which is then empty for the next
// parent, and launches it.
extern "C" __device__ void __klap_launch_children(KlapQueue* queue, void* consumer) {
  const unsigned long long packed = atomicExch(&queue->packed, 0ull);
  const unsigned int big = atomicExch(&queue->big, 0u);
  queue->exited = 0;
  const unsigned int small = static_cast<unsigned int>(packed) & KLAP_MAX_RECORDS;
  if (queue->report != nullptr) {
    reinterpret_cast<volatile unsigned long long*>(queue->report)[KLAP_REPORT_CHILDREN] += small + big;
  }
  launch_sequence(queue, consumer, {queue->records, queue->prefix, 0, small}, packed >> KLAP_INDEX_BITS);
  if (big == 0) return;
  const unsigned int begin = queue->capacity - big;
  const unsigned long long blocks = number_big_children(queue, begin);
  launch_sequence(queue, consumer,
                  {queue->records + static_cast<unsigned long long>(begin) * KLAP_RECORD_BYTES,
                   queue->prefix + begin, 0, big},
                  blocks);
}
