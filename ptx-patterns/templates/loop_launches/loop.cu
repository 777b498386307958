// The consumer of loop launches without order: it runs every recorded child. The host enqueues it directly
// behind the parent in the same stream. Or the parent launches it when it is complete, or a group of its
// blocks is (launch_consumer.cu).
//
// It is launched with as many blocks as fit on the GPU, each of exactly the threads of the largest child. A
// block takes the number of the next item and runs its blocks of the child one after another. Children may be
// of several kernels, as in worklist.cu. The call of __klap_child_body_N is a marker: the code of the kernel
// with that number is spliced in there. Its parameters are read from the record, and its special registers
// are taken from the marker's arguments. Threads that its block does not have wait at the barrier behind it.
//
// Constants: KLAP_KERNELS, KLAP_THREADS, KLAP_ARGS_OFFSET and KLAP_GRID_1D as in worklist.cu; those of
// exits.h.
#include "common/exits.h"
#include "common/memory_order.h"
#include "common/sequence.h"
#include "worklist/work_queue.h"

#define KLAP_KERNEL(number, width, height, depth)                                                       \
  extern "C" __device__ void __klap_child_body_##number(                                                \
      const unsigned char* arguments, unsigned int ctaid_x, unsigned int ctaid_y, unsigned int ctaid_z, \
      unsigned int nctaid_x, unsigned int nctaid_y, unsigned int nctaid_z, unsigned int tid_x,          \
      unsigned int tid_y, unsigned int tid_z);
KLAP_KERNELS
#undef KLAP_KERNEL

#define KLAP_KERNEL(number, width, height, depth) +1
enum : unsigned int { kKernels = KLAP_KERNELS };
#undef KLAP_KERNEL

// Items that were reserved, with room or without; the parent is complete. The last block to leave may be
// writing there already, if there are blocks that need not work.
static __device__ __forceinline__ unsigned int reserved_items(const KlapWorkQueue* queue) {
  unsigned long long reserved;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(reserved) : "l"(&queue->reserved) : "memory");
  const unsigned int items = static_cast<unsigned int>(reserved >> 32);
  return items < queue->item_capacity ? items : queue->item_capacity;
}

// How many of the kernel's blocks come to the queue at all, the first ones: there are as many as fit on the
// device, and all of them would change the same two words. To a block that comes so late that the queue is
// empty again, it is none or the first: rightly, as it is not one of them.
static __device__ __forceinline__ unsigned int working_blocks(unsigned int items) {
  return items == 0 ? 1u : items < gridDim.x ? items : gridDim.x;
}

// The next item; 0 if there is none. A taken item is cleared for the next use of the queue. Items that were
// reserved without room are empty.
static __device__ __forceinline__ unsigned long long take(KlapWorkQueue* queue, unsigned int items) {
#pragma unroll 1
  for (;;) {
    const unsigned int number = static_cast<unsigned int>(add_global(&queue->turns, KLAP_WORK_TURN) >> 32);
    if (number >= items) return 0;
    const unsigned long long item = queue->items[number];
    if (item == 0) continue;
    queue->items[number] = 0;
    return item;
  }
}

// Counts this block out, for one thread of it; the last block leaves the queue empty for the next parent. The
// second fence acquires what the others released. So they have read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapWorkQueue* queue, unsigned int working,
                                             unsigned int children) {
  __threadfence();
  const unsigned long long leaving = static_cast<unsigned long long>(children) << 32 | 1u;
  const unsigned long long exited = add_global(&queue->exited, leaving) + leaving;
  if (static_cast<unsigned int>(exited) != working) return;
  __threadfence();
  report_beside_others(queue->report, KLAP_REPORT_CHILDREN, exited >> 32);  // groups' consumers run at once
  report_beside_others(queue->report, KLAP_REPORT_NATIVE, queue->native);
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(&queue->reserved), "l"(0ull) : "memory");
  queue->turns = 0;
  queue->exited = 0;
  queue->native = 0;
  queue->after_native = 0;
}

extern "C" __global__ void __launch_bounds__(KLAP_THREADS) __klap_consumer(KlapWorkQueue* queue) {
  __shared__ unsigned long long taken;
  const unsigned int thread = threadIdx.x;
  const unsigned int items = reserved_items(queue);
  if (blockIdx.x >= working_blocks(items)) return;
  unsigned int children = 0;  // begun by this block; in the first thread

#pragma unroll 1
  for (;;) {
    if (thread == 0) taken = take(queue, items);
    __syncthreads();
    const unsigned long long item = taken;
    if (item == 0) break;
    unsigned char* const record = queue->records + KLAP_WORK_ITEM_OFFSET(item);
    const unsigned int part = KLAP_WORK_ITEM_PART(item);
    const unsigned int kernel = kKernels == 1 ? 0 : KLAP_WORK_ITEM_KERNEL(item);
    if (part == 0) ++children;

    // This part's share of the child's blocks: at least one.
    Linear linear = part, count = 1;
    const uint4 grid = *reinterpret_cast<const uint4*>(record);
    const Linear blocks = static_cast<Linear>(grid.x) * grid.y * grid.z;
    if (blocks > KLAP_WORK_PARTS) {
      const Linear share = blocks / KLAP_WORK_PARTS;
      const unsigned int rest = static_cast<unsigned int>(blocks % KLAP_WORK_PARTS);
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
                               thread % (width), thread / (width) % (height),                       \
                               thread / ((width) * (height)));
      KLAP_KERNELS
#undef KLAP_KERNEL
      end_child_block();  // for what the child's next block shares
    }
  }
  if (thread == 0) leave(queue, working_blocks(items), children);
}
