// The consumer of launches that keep an order (loop_records.h): it runs every recorded child, and the
// children of one sequence one after another. The host enqueues it directly behind the parent in the same
// stream. Or the parent launches it when it is complete, or a group of its blocks is (launch_consumer.cu).
//
// It is launched with as many blocks as fit on the GPU, each of exactly the threads of the largest child. The
// first child of every sequence is ready from the beginning. A block takes an item, which is a share of a
// child's blocks, and runs it. The block that finishes the last item of a child goes on with the child behind
// it. It takes all of that child if it is one item, else its first item, and makes the others ready for all
// blocks. So a sequence of small children runs in one block from end to end, with a barrier between two of
// them. Wide children use the whole GPU. No block waits while it holds an item that is not done. So any
// number of resident blocks gets through, a single one as well.
//
// Children may be of several kernels, as in worklist.cu. The call of __klap_child_body_N is a marker: the
// code of the kernel with that number is spliced in there. Its parameters are read from the record, and its
// special registers are taken from the marker's arguments. Threads that its block does not have wait at the
// barrier behind it.
//
// A child may read memory that the child before it has written in this same kernel. The fence that counts off
// an item releases the writes of all threads of its block. The thread that counts off the last item acquires
// them, and passes them on with the items that it makes ready. None of that memory may be read through the
// non-coherent cache.
//
// Constants: KLAP_KERNELS, KLAP_THREADS, KLAP_ARGS_OFFSET and KLAP_GRID_1D as in worklist.cu; those of
// exits.h.
#include "common/exits.h"
#include "common/sequence.h"
#include "loop_launches/loop_records.h"
#include "worklist/turns.h"

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

// Blocks that wait look again after this many nanoseconds, twice as many each time. At the common end of all
// they look only every few times.
enum : unsigned int { kShortestPause = 32, kLongestPause = 256, kLooksPerEnd = 4 };

// Values that stay as they are while the consumer runs, kept where no fence throws them away.
struct Arrays {
  unsigned long long* items;
  unsigned char* records;
};

static __device__ __forceinline__ KlapLoopRecord* record_of(const Arrays& arrays, unsigned long long item) {
  return reinterpret_cast<KlapLoopRecord*>(arrays.records + KLAP_WORK_ITEM_OFFSET(item));
}

static __device__ __forceinline__ unsigned int items_of(const KlapLoopRecord* record) {
  const unsigned long long blocks =
      static_cast<unsigned long long>(record->grid_x) * record->grid_y * record->grid_z;
  return blocks < KLAP_WORK_PARTS ? static_cast<unsigned int>(blocks) : KLAP_WORK_PARTS;
}

// How many of the kernel's blocks come to the queue at all, the first ones. Where each child is one item, a
// sequence never becomes more than the block that has begun it.
static __device__ __forceinline__ unsigned int working_blocks(const KlapWorkQueue* queue) {
  unsigned long long reserved;
  unsigned int published;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(reserved) : "l"(&queue->reserved) : "memory");
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(published) : "l"(&queue->published) : "memory");
  const unsigned int records = static_cast<unsigned int>(reserved);
  const unsigned int items = static_cast<unsigned int>(reserved >> 32);
  const unsigned int most = items == records ? published : items;
  return most == 0 ? 1u : most < gridDim.x ? most : gridDim.x;
}

// The next item once it is ready, for one thread of the block, which is done with `finished` others; 0 if
// there will be no more. It is cleared for the next use of the queue.
static __device__ __forceinline__ unsigned long long take(KlapWorkQueue* queue, const Arrays& arrays,
                                                          unsigned int finished) {
  unsigned int number;
  if (!change_turns(queue, finished, 1, number)) return 0;
  unsigned long long* const at = arrays.items + number;
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for (unsigned int look = 1;; ++look) {
    const unsigned int is_over = look % kLooksPerEnd == 0 ? load_relaxed(&queue->done) : 0;
    // Numbers behind the last item that there can be are waited for by blocks that only learn of the end.
    const unsigned long long item = number < queue->item_capacity ? load_relaxed(at) : 0;
    if (item != 0) {
      clear(at);
      __threadfence();
      return item;
    }
    if (is_over != 0) return 0;
    __nanosleep(pause);
    if (pause < kLongestPause) pause *= 2;
  }
}

// Called by one thread when all threads of its block are done with an item. Behind the barrier, the fence
// releases their writes. True if it was the record's last item; then the writes of other blocks are acquired.
static __device__ __forceinline__ bool finish(KlapLoopRecord* record) {
  if (items_of(record) == 1) return true;  // no other block has one
  __threadfence();
  if (atomicSub(&record->unfinished, 1u) != 1u) return false;
  __threadfence();
  return true;
}

// The first item of the child behind, and the others made ready; 0 if there is none. Records that were taken
// back are passed over.
static __device__ __forceinline__ unsigned long long follow(KlapWorkQueue* queue, const Arrays& arrays,
                                                            const KlapLoopRecord* record) {
  unsigned int link = record->behind;
  while (link != KLAP_LINK_NONE && record_of(arrays, link)->grid_x == 0)
    link = record_of(arrays, link)->behind;
  if (link == KLAP_LINK_NONE) return 0;
  const KlapLoopRecord* const next = record_of(arrays, link);
  const unsigned int items = items_of(next);
  unsigned long long first = static_cast<unsigned long long>(next->kernel) * KLAP_WORK_KERNEL_STEP + link;
  if (items == 1) return first;
  const unsigned int others = items - 1;
  const unsigned int slot = add_global(&queue->published, others);
  add_global(&queue->turns, static_cast<unsigned long long>(others));
  __threadfence();
#pragma unroll 1
  for (unsigned int part = 1; part < items; ++part) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;"
                 :
                 : "l"(arrays.items + slot + part - 1), "l"(first + KLAP_WORK_ITEM_STEP * part)
                 : "memory");
  }
  return first;
}

// The next item: of the child behind this one if that may begin, else another item.
static __device__ __forceinline__ unsigned long long next_item(KlapWorkQueue* queue, const Arrays& arrays,
                                                               unsigned long long item) {
  if (item != 0) {
    KlapLoopRecord* const record = record_of(arrays, item);
    const unsigned long long behind = finish(record) ? follow(queue, arrays, record) : 0;
    if (behind != 0) return behind;
  }
  return take(queue, arrays, item != 0 ? 1 : 0);
}

// Runs an item's share of its child's blocks.
static __device__ __forceinline__ void run_item(const Arrays& arrays, unsigned long long item) {
  const unsigned char* const record = arrays.records + KLAP_WORK_ITEM_OFFSET(item);
  const unsigned int part = KLAP_WORK_ITEM_PART(item), thread = threadIdx.x;
  const unsigned int kernel = kKernels == 1 ? 0 : KLAP_WORK_ITEM_KERNEL(item);
  Linear linear = part, count = 1;
  const uint4 grid = *reinterpret_cast<const uint4*>(record);
  const Linear blocks = static_cast<Linear>(grid.x) * grid.y * grid.z;
  if (blocks == 0) return;  // taken back
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
    end_child_block();  // for what the child's next block shares, and for the child behind
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
  queue->turns = 0;
  queue->done = 0;
  queue->exited = 0;
  queue->native = 0;
  queue->after_native = 0;
  // Blocks that come late read these two last: to them it is an empty queue, at which the first one works.
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&queue->published), "r"(0u) : "memory");
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(&queue->reserved), "l"(0ull) : "memory");
}

extern "C" __global__ void __launch_bounds__(KLAP_THREADS) __klap_consumer(KlapWorkQueue* queue) {
  __shared__ unsigned long long taken;
  __shared__ Arrays arrays;
  const unsigned int thread = threadIdx.x;
  const unsigned int working = working_blocks(queue);
  if (blockIdx.x >= working) return;
  unsigned int children = 0;  // begun by this block; in the first thread
  if (thread == 0) arrays = {queue->items, queue->records};
  unsigned long long item = 0;  // in the first thread
#pragma unroll 1
  for (;;) {
    if (thread == 0) taken = item = next_item(queue, arrays, item);
    __syncthreads();
    const unsigned long long now = taken;
    if (now == 0) break;
    if (KLAP_WORK_ITEM_PART(now) == 0) ++children;
    run_item(arrays, now);
    __syncthreads();  // all have read what was taken
  }
  if (thread == 0) leave(queue, working, children);
}
