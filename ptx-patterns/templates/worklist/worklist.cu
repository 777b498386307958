// The persistent consumer: it runs every recorded child, and the children that these record in turn, until
// none is left. The host enqueues it directly behind the parent in the same stream.
//
// It is launched with as many blocks as fit on the GPU, each of exactly the threads of the largest child. A
// block takes the number of the next item, waits until that item is ready, and runs its blocks of the child
// one after another. The numbers are given out in the order in which running threads reserved them. So a
// waiting block waits for a block that runs, and a single resident block gets through alone. Children may be
// of several kernels. The call of __klap_child_body_N is a marker: the code of the kernel with that number is
// spliced in there. Its parameters are read from the record, its special registers are taken from the
// marker's arguments, and its launches are replaced by worklist_record.cu. Threads that its block does not
// have wait at the barrier behind it.
//
// If more items are reserved than blocks are there to take them, a block takes several at a time
// (KLAP_TAKES). All blocks change one word for that, and each change makes a block wait. A block runs its
// items in the order of their numbers, so the argument about waiting still holds. The first item of all that
// is not done was reserved by a thread that ran an earlier one, and the block that has it is not held up by
// any other. Before a block waits it counts off the items that it has done, or the last blocks would wait for
// each other's. If warps of a child do not meet or share memory (KLAP_APART), the items of a block run side
// by side. Its warps go from item to item without waiting, and change places from one to the next. The first
// warp of each child often has the most to do, so this work goes to different warps.
//
// A child's data was written in this same kernel. It is read only behind the acquire that found its item
// ready. None of it may go through the non-coherent cache, here or in the child.
//
// Extents of blocks may be those of the block that the host launches the parent with (KLAP_INHERITED_BLOCK).
// Then the consumer gets that as a parameter, and has blocks of as many whole warps as the largest of its
// kernels needs. The launching code ensures that a kernel whose threads meet fills them.
//
// Constants: KLAP_KERNELS, for every kernel KLAP_KERNEL(number, width, height, depth) with its block, whose
// extents may be those of `own`; KLAP_THREADS, the most threads of these blocks; KLAP_ARGS_OFFSET;
// KLAP_GRID_1D when every child's grid has one row and one layer; KLAP_MIN_BLOCKS, the min blocks per SM,
// unless that is left open; KLAP_TAKES, the most items that a block takes at a time, a thread of the first
// warp for each; KLAP_APART, with blocks of whole warps; those of exits.h.
#include "common/exits.h"
#include "common/sequence.h"
#include "worklist/turns.h"
#include "worklist/work_queue.h"

#define KLAP_KERNEL(number, width, height, depth)                                                       \
  extern "C" __device__ void __klap_child_body_##number(                                                \
      const unsigned char* arguments, unsigned int ctaid_x, unsigned int ctaid_y, unsigned int ctaid_z, \
      unsigned int nctaid_x, unsigned int nctaid_y, unsigned int nctaid_z, unsigned int tid_x,          \
      unsigned int tid_y, unsigned int tid_z);
KLAP_KERNELS
#undef KLAP_KERNEL

#ifdef KLAP_MIN_BLOCKS
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS, KLAP_MIN_BLOCKS)
#else
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS)
#endif

#ifdef KLAP_INHERITED_BLOCK
#define KLAP_INHERITED_PARAMETER , const uint3 own
#define KLAP_INHERITED_ARGUMENT , own
#define KLAP_BLOCK_THREADS blockDim.x
#else
#define KLAP_INHERITED_PARAMETER
#define KLAP_INHERITED_ARGUMENT
#define KLAP_BLOCK_THREADS KLAP_THREADS
#endif

#define KLAP_KERNEL(number, width, height, depth) +1
enum : unsigned int { kKernels = KLAP_KERNELS };
#undef KLAP_KERNEL

// Waiting blocks look at their item again after this many nanoseconds, twice as many each time up to the
// longest pause: an item is found that late. A look takes 700 ns more. 2,000 blocks, as many as there are, so
// look 2 times each nanosecond, at 32 bytes of the second-level cache: 70 of the 5,000 bytes that this gives
// in the time. At the common end of all they look only every few times: that is one word, in one place.
enum : unsigned int { kShortestPause = 32, kLongestPause = 256, kLooksPerEnd = 4 };

// Values that stay as they are while the consumer runs. They are kept in shared memory. The first-level cache
// is emptied whenever a block of the multiprocessor finds an item, and each item would wait for these values
// anew.
struct Arrays {
  unsigned long long* items;
  unsigned char* records;
  unsigned int item_capacity;
};

// The items that a block has taken: they have numbers in a row, and are 0 if they were not ready.
struct Taken {
  unsigned long long item[KLAP_TAKES];
  unsigned int number, count;
};

// The item of that number if it is ready, else 0. It is cleared for the next use of the queue.
//
// Only the look that finds the item acquires. An acquire empties the first-level cache of the multiprocessor.
// If each look did that, blocks that wait would slow down all blocks beside them.
static __device__ __forceinline__ unsigned long long look_at_item(const Arrays& arrays, unsigned int number) {
  if (number >= arrays.item_capacity) return 0;
  const unsigned long long item = load_relaxed(arrays.items + number);
  if (item != 0) {
    acquire(arrays.items + number);
    clear(arrays.items + number);
  }
  return item;
}

// Waits for the item of that number until it is ready; 0 if there will be no more.
static __device__ __forceinline__ unsigned long long await_item(KlapWorkQueue* queue, const Arrays& arrays,
                                                                unsigned int number) {
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for (unsigned int look = 1;; ++look) {
    // In flight at the same time as the item.
    const unsigned int is_over = look % kLooksPerEnd == 0 ? load_relaxed(&queue->done) : 0;
    const unsigned long long item = look_at_item(arrays, number);
    if (item != 0) return item;
    if (is_over != 0) return 0;
    __nanosleep(pause);
    if (pause < kLongestPause) pause *= 2;
  }
}

// The number of items to take next: a quarter of a block's share of those that are not taken. Each block
// computes it from the numbers that it found when it took the last items. If all do that at one time, larger
// parts of a share would reserve numbers of items that are not there. Later items would then wait for the few
// blocks that hold those numbers.
static __device__ __forceinline__ unsigned int wish_for(unsigned int reserved, unsigned int taken) {
  if (reserved <= taken) return 1;
  const unsigned int share = (reserved - taken) / (4 * gridDim.x);
  return share < 1 ? 1 : share < KLAP_TAKES ? share : KLAP_TAKES;
}

// The next items for this block, for KLAP_TAKES threads that see each other's memory behind a barrier of warp
// or block; none if there will be no more. The first one is ready. `wish` is kept in the first thread.
static __device__ __forceinline__ void take(KlapWorkQueue* queue, const Arrays& arrays, Taken& taken,
                                            unsigned int finished, [[maybe_unused]] unsigned int& wish) {
#if KLAP_TAKES > 1
  if (threadIdx.x == 0) {
    const unsigned long long reserved = load_relaxed(&queue->reserved);  // in flight with the atomic
    taken.count = change_turns(queue, finished, wish, taken.number) ? wish : 0;
    wish = wish_for(static_cast<unsigned int>(reserved >> 32), taken.number + wish);
  }
  __syncwarp((1u << KLAP_TAKES) - 1u);
#else
  taken.count = change_turns(queue, finished, 1, taken.number) ? 1 : 0;
#endif
  const unsigned int number = taken.number + threadIdx.x, count = taken.count;
  unsigned long long item = 0;
  if (threadIdx.x < count) taken.item[threadIdx.x] = item = look_at_item(arrays, number);
#if KLAP_TAKES > 1
  __syncwarp((1u << KLAP_TAKES) - 1u);
#endif
  if (threadIdx.x != 0 || count == 0 || item != 0) return;
  item = await_item(queue, arrays, number);
  taken.item[0] = item;
  if (item == 0) taken.count = 0;
}

#if KLAP_TAKES > 1
// An item that was taken and not ready, for the first thread, which has `finished` others to count off.
static __device__ __forceinline__ unsigned long long take_late(KlapWorkQueue* queue, const Arrays& arrays,
                                                               unsigned int number, unsigned int& finished) {
  unsigned int unused;
  if (finished != 0 && !change_turns(queue, finished, 0, unused)) return 0;
  finished = 0;
  return await_item(queue, arrays, number);
}
#endif

// Counts this block out, for one thread of it; the last block leaves the queue empty for the next parent. The
// second fence acquires what the others released. So they have read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapWorkQueue* queue, unsigned int children) {
  __threadfence();
  const unsigned long long leaving = static_cast<unsigned long long>(children) << 32 | 1u;
  const unsigned long long exited = add_global(&queue->exited, leaving) + leaving;
  if (static_cast<unsigned int>(exited) != gridDim.x) return;
  __threadfence();
  report_next(queue->report, KLAP_REPORT_CHILDREN, exited >> 32);
  report_next(queue->report, KLAP_REPORT_NATIVE, queue->native);
  queue->reserved = 0;
  queue->turns = 0;
  queue->done = 0;
  queue->exited = 0;
  queue->native = 0;
}

static __device__ __forceinline__ void end_block() {
#ifdef KLAP_APART
  __syncwarp();
#else
  end_child_block();
#endif
}

// Runs an item's share of its child's blocks, by the thread of that number.
static __device__ __forceinline__ void run_item(const Arrays& arrays, unsigned long long item,
                                                unsigned int thread KLAP_INHERITED_PARAMETER) {
  const unsigned char* const record = arrays.records + KLAP_WORK_ITEM_OFFSET(item);
  const unsigned int part = KLAP_WORK_ITEM_PART(item);
  const unsigned int kernel = kKernels == 1 ? 0 : KLAP_WORK_ITEM_KERNEL(item);

  // The grid is not read for a child of just one block: its arguments would wait for it.
  Linear linear = part, count = 1;
  if (KLAP_WORK_ITEM_IS_SHARED_OUT(item)) {
    const uint4 grid = *reinterpret_cast<const uint4*>(record);
    const Linear blocks = static_cast<Linear>(grid.x) * grid.y * grid.z;
    const Linear share = blocks / KLAP_WORK_PARTS;
    const unsigned int rest = static_cast<unsigned int>(blocks % KLAP_WORK_PARTS);
    linear = part * share + (part < rest ? part : rest);
    count = share + (part < rest ? 1u : 0u);
  }
#pragma unroll 1
  for (; count != 0; --count, ++linear) {
    const uint4 size = *reinterpret_cast<const uint4*>(record);
    const uint3 at = position_in(size, linear);
#define KLAP_KERNEL(number, width, height, depth)                                                    \
  if (kernel == number &&                                                                            \
      ((width) * (height) * (depth) == KLAP_BLOCK_THREADS || thread < (width) * (height) * (depth))) \
    __klap_child_body_##number(record + KLAP_ARGS_OFFSET, at.x, at.y, at.z, size.x, size.y, size.z,  \
                               (height) * (depth) == 1 ? thread : thread % (width),                  \
                               (height) == 1 ? 0 : thread / (width) % (height),                      \
                               (depth) == 1 ? 0 : thread / ((width) * (height)));
    KLAP_KERNELS
#undef KLAP_KERNEL
    // The block meets here before the child's next block shares memory, and before it retires after the last
    // one.
    end_block();
  }
}

extern "C" __global__ void KLAP_BOUNDS __klap_consumer(KlapWorkQueue* queue KLAP_INHERITED_PARAMETER) {
  __shared__ Taken taken;
  __shared__ Arrays arrays;
  const unsigned int thread = threadIdx.x;
  unsigned int children = 0;  // begun by this block
  unsigned int finished = 0;  // items that are done and not counted off; in the first thread
  unsigned int wish = 1;      // the number of items to take next
  if (thread == 0) arrays = {queue->items, queue->records, queue->item_capacity};

  bool is_over = false;
#pragma unroll 1
  while (!is_over) {
    if (thread < KLAP_TAKES) take(queue, arrays, taken, finished, wish);
    finished = 0;
    __syncthreads();
    const unsigned int count = taken.count;
    is_over = count == 0;
#pragma unroll 1
    for (unsigned int i = 0; i < count; ++i) {
#if KLAP_TAKES > 1
      if (taken.item[i] == 0) {
        __syncthreads();  // all have seen that, and are done with the others
        if (thread == 0) taken.item[i] = take_late(queue, arrays, taken.number + i, finished);
        __syncthreads();
      }
#endif
      const unsigned long long item = taken.item[i];
      is_over = item == 0;
      if (is_over) break;
      if (KLAP_WORK_ITEM_PART(item) == 0) ++children;
#ifdef KLAP_APART
      run_item(arrays, item, (thread + 32 * i) % KLAP_BLOCK_THREADS KLAP_INHERITED_ARGUMENT);
#else
      run_item(arrays, item, thread KLAP_INHERITED_ARGUMENT);
#endif
      ++finished;
    }
#ifdef KLAP_APART
    __syncthreads();
#endif
  }
  if (thread == 0) leave(queue, children);
}
