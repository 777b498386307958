// The executor: a persistent consumer that runs grids as CUDA's device-side streams would (grid_records.h).
// The host enqueues it directly behind the parent in the same stream.
//
// It is launched with as many blocks as fit on the GPU, each with the threads of the largest child. A block
// takes the number of the next item and waits until that item is ready. An item is a grid. A grid of several
// blocks gets more items when there are blocks that wait, and all of them take its blocks one after another.
//
// The block that finishes the last part of a grid looks for what may begin now: a tail launch of the grid, or
// the grid behind it in its stream. If there is one, the block runs it next. So a sequence of small grids
// runs in one block from end to end. No block waits while it holds an item that is not done. So any number of
// resident blocks gets through, a single one as well.
//
// The call of __klap_child_body_N is a marker: the code of the kernel with that number is spliced in there.
// Its parameters are read from the record, its special registers are taken from the marker's arguments, and
// its launches are replaced by executor_record.cu. Threads that its block does not have wait at the barrier
// behind it.
//
// A grid may read memory that others have written in this same kernel. A block releases the writes of its
// threads before it counts off an item or makes one ready. The block that counts off the last one acquires
// them all. None of that memory may be read through the non-coherent cache.
//
// Blocks of a grid may wait for blocks with lower numbers (analysis/executed/earlier_blocks.h). Those of such
// a kernel begin in the order of their numbers: each is given out by itself, and no part of the grid lies in
// the queue. So the lowest block that is not done is running, and waits for nobody.
//
// Constants: KLAP_HALVES where kernels are split at their waits (KLAP_STREAM_SECOND_HALF). KLAP_KERNELS, for
// every kernel KLAP_KERNEL(number, width, height, depth, launches) with its block and whether it launches,
// where an extent may be that of `launched`, the record's block; KLAP_THREADS, the most threads of these
// blocks; KLAP_COPIES, the number of the kernel that copies and fills memory, if there is one, which has its
// body in copies.h; KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES; KLAP_GRID_1D when every grid has one row and one
// layer; KLAP_MIN_BLOCKS, the min blocks per SM, unless that is left open; those of exits.h.
// KLAP_BLOCK_ORDERS, if any kernel's blocks begin in order: KLAP_BLOCK_ORDER(number, columns) for each of
// these, and whether y counts faster than x.
#include "common/exits.h"
#include "common/sequence.h"
#include "executor/grid_queue.h"
#include "executor/shares.h"

#define KLAP_KERNEL(number, width, height, depth, launches)                                                  \
  extern "C" __device__ void __klap_child_body_##number(                                                     \
      const unsigned char* arguments, unsigned int ctaid_x, unsigned int ctaid_y, unsigned int ctaid_z,      \
      unsigned int nctaid_x, unsigned int nctaid_y, unsigned int nctaid_z, unsigned int tid_x,               \
      unsigned int tid_y, unsigned int tid_z, unsigned int ntid_x, unsigned int ntid_y, unsigned int ntid_z, \
      KlapGridBlock* block);
KLAP_KERNELS
#undef KLAP_KERNEL

#ifdef KLAP_COPIES
#include "executor/copies.h"
#endif
#ifdef KLAP_HALVES
#include "executor/second_halves.h"
#endif

#define KLAP_KERNEL(number, width, height, depth, launches) +1
enum : unsigned int { kKernels = KLAP_KERNELS };
#undef KLAP_KERNEL

#ifdef KLAP_MIN_BLOCKS
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS, KLAP_MIN_BLOCKS)
#else
#define KLAP_BOUNDS __launch_bounds__(KLAP_THREADS)
#endif

// Blocks that wait look again after a pause in nanoseconds, which grows with the time since any item was made
// ready. A look takes 500 more. So an item is found late by a fiftieth of that time, and blocks that wait
// long leave the multiprocessor to others. For other items, and for the common end of all, they look only
// every few times.
enum : unsigned int { kShortestPause = 32, kLongerPause = 8, kLongestPause = 4096, kLooksPerNews = 4 };

// The item that a block has taken, as far as all its threads need to know it.
struct Taken {
  unsigned long long item;  // 0: there will be no more
  uint4 size;               // the grid, and KLAP_GRID_BLOCK
};

static __device__ __forceinline__ bool is_one_block(unsigned long long item) {
  return (KLAP_GRID_ITEM_KIND(item) & KLAP_GRID_IS_ONE_BLOCK) != 0;
}

static __device__ __forceinline__ bool launches(unsigned long long item) {
  const unsigned int kernel = kKernels == 1 ? 0 : KLAP_GRID_ITEM_KERNEL(item);
  bool result = false;
#define KLAP_KERNEL(number, width, height, depth, launches) \
  if (kernel == number) result = launches;
  KLAP_KERNELS
#undef KLAP_KERNEL
  return result;
}

// Whether the blocks of the item's grid begin in order, and whether y counts faster than x there.
static __device__ __forceinline__ bool begins_in_order(unsigned long long item) {
  bool result = false;
#ifdef KLAP_BLOCK_ORDERS
#define KLAP_BLOCK_ORDER(number, columns) result = result || KLAP_GRID_ITEM_KERNEL(item) == number;
  KLAP_BLOCK_ORDERS
#undef KLAP_BLOCK_ORDER
#endif
  return result;
}
static __device__ __forceinline__ bool begins_by_columns(unsigned long long item) {
  bool result = false;
#ifdef KLAP_BLOCK_ORDERS
#define KLAP_BLOCK_ORDER(number, columns) \
  if (KLAP_GRID_ITEM_KERNEL(item) == number) result = columns;
  KLAP_BLOCK_ORDERS
#undef KLAP_BLOCK_ORDER
#endif
  return result;
}

// ---- what one thread of the block does when the others are done with a grid's block ----

// The block has no more use for the record.
static __device__ __forceinline__ void keep_record(KlapWorkQueue* queue, KlapGridBlock& own,
                                                   unsigned int link) {
  const int count = own.free < 0 ? 0 : own.free;
  if (count < KLAP_GRID_KEPT) {
    own.free_records[count] = link;
    own.free = count + 1;
    return;
  }
  // All are given back at once, which takes no longer than one.
  unsigned int last = link;
#pragma unroll 1
  for (int i = 0; i < KLAP_GRID_KEPT; ++i) {
    set_next(own.arrays.records, last, own.free_records[i]);
    last = own.free_records[i];
  }
  give_back(queue, own.arrays.records, link, last);
  own.free = 0;
}

// A block of a grid has ended, and with it its NULL stream. If the block holds the first launch of the
// stream, nobody else knows of the last one. True in that case: then the item that is held is final.
static __device__ __forceinline__ bool leave_null_stream(KlapWorkQueue* queue, KlapGridBlock& own) {
  const unsigned int last = own.last, first = own.first;
  own.last = 0;
  own.first = 0;
  if (last == 0) return false;
  KlapGridRecord* const record = grid_at(own.arrays.records, last);
  if (first != 0) {
    record->behind = KLAP_GRID_NOTHING;
    own.held |= KLAP_GRID_FLAGS(KLAP_GRID_IS_FINAL);
    return true;
  }
  if (exchange_behind(record, KLAP_GRID_NOTHING) == KLAP_GRID_COMPLETE) keep_record(queue, own, last);
  return false;
}

// The item of a tail launch of the grid `parent`, whose turn it is. The last one takes the place of its
// parent: what would be complete with the parent is so when this one is.
static __device__ __forceinline__ unsigned long long start_tail(KlapWorkQueue* queue, KlapGridBlock& own,
                                                                unsigned int parent, unsigned int completes,
                                                                unsigned int link) {
  KlapGridRecord* const record = grid_at(own.arrays.records, link);
  unsigned int kind = record->kind;
#ifdef KLAP_HALVES
  if (record->behind == KLAP_GRID_SECOND_HALF) {
    if (record->next != 0) return KLAP_GRID_ITEM(kind | KLAP_GRID_IS_FINAL, link);  // start_other_halves()
    record->behind = KLAP_GRID_NOTHING;
  }
#endif
  if (record->next != 0) {
    record->kind = kind |= KLAP_GRID_IS_TAIL;
  } else {
    if (completes != parent) keep_record(queue, own, parent);
    record->completes = completes;
  }
  return KLAP_GRID_ITEM(kind, link);
}

// Adds to what a grid waits for. True if it is done with that: then the writes of all those are acquired. The
// caller has released its own.
static __device__ __forceinline__ bool count_off(KlapWorkQueue* queue, const KlapGridBlock& own,
                                                 unsigned int link, unsigned long long change) {
  unsigned long long* const pending = pending_of(queue, own.arrays.records, link);
  const unsigned long long before = add_global(pending, change);
  if (before + change != (link == 0 ? KLAP_GRID_ROOT_DONE : 0)) return false;
  acquire(pending);
  return true;
}

// A grid is complete, and all that may ever stand behind it in its stream is there. Returns the item behind
// it. If there is none, says whether its parent is done with its children.
//
// Grids that run one after another are passed on from block to block. So only the last one has to release its
// writes when it is counted: with them it releases those of all before it.
static __device__ __forceinline__ unsigned long long complete_in_final_stream(
    KlapWorkQueue* queue, KlapGridBlock& own, unsigned int link, unsigned int parent, unsigned int kind,
    bool& is_parent_done) {
  const unsigned long long behind = grid_at(own.arrays.records, link)->behind;
  const bool is_counted = (kind & KLAP_GRID_IS_ONLY) == 0;
  keep_record(queue, own, link);
  is_parent_done = false;
  if (behind != 0 && behind != KLAP_GRID_NOTHING) {
    if (is_counted) add_global(pending_of(queue, own.arrays.records, parent), 0ull - 1);
    return behind | KLAP_GRID_FLAGS(kind & (KLAP_GRID_IS_FINAL | KLAP_GRID_IS_ONLY));
  }
  is_parent_done = true;
  if (is_counted) {
    release();
    is_parent_done = count_off(queue, own, parent, 0ull - 1);
  }
  return 0;
}

// Completes a grid while launches may still come into its stream, likewise.
static __device__ __forceinline__ unsigned long long complete_in_open_stream(
    KlapWorkQueue* queue, KlapGridBlock& own, unsigned int link, unsigned int parent, bool& is_parent_done) {
  KlapGridRecord* const record = grid_at(own.arrays.records, link);
  release();
  const unsigned long long behind = exchange_global(&record->behind, KLAP_GRID_COMPLETE);
  is_parent_done = count_off(queue, own, parent, 0ull - 1);
  if (behind == 0) return 0;
  if (behind != KLAP_GRID_NOTHING) acquire(&record->behind);
  keep_record(queue, own, link);
  return behind != KLAP_GRID_NOTHING ? behind : 0;  // if there is one, the parent waits for it as well
}

// Called when the blocks of the grid that this block has run, and all grids that it launched, are done;
// `tail` is its first tail launch. Returns the item that may begin now, 0 if there is none. What a record
// says of the grid itself is known already. To read it again would take as long as a small grid.
static __device__ __forceinline__ unsigned long long complete(KlapWorkQueue* queue, KlapGridBlock& own,
                                                              unsigned int link, unsigned int tail) {
  unsigned int completes = own.completes, parent = own.parent, kind = own.kind;
  bool is_known = true;
#pragma unroll 1
  for (;;) {
    if (tail != 0) return start_tail(queue, own, link, completes, tail);
    if (link != completes) keep_record(queue, own, link);
    if (completes == 0) {
      asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(&queue->done), "r"(1u) : "memory");
      return 0;
    }
    if (!is_known || link != completes) {
      const KlapGridRecord* const record = grid_at(own.arrays.records, completes);
      parent = record->parent;
      kind = record->kind;
    }
    is_known = false;
    if ((kind & KLAP_GRID_IS_TAIL) != 0) {
      const unsigned int next = grid_at(own.arrays.records, completes)->next;
      keep_record(queue, own, completes);
      return start_tail(queue, own, parent, parent == 0 ? 0 : grid_at(own.arrays.records, parent)->completes,
                        next);
    }
    bool is_parent_done;
    const unsigned long long behind =
        (kind & KLAP_GRID_IS_FINAL) != 0
            ? complete_in_final_stream(queue, own, completes, parent, kind, is_parent_done)
            : complete_in_open_stream(queue, own, completes, parent, is_parent_done);
    if (behind != 0 || !is_parent_done) return behind;
    link = parent;
    tail = *first_tail_of(queue, own.arrays.records, link);
    completes = link == 0 ? 0 : grid_at(own.arrays.records, link)->completes;
  }
}

// The block is done with an item. Returns the item that may begin now, 0 if there is none.
static __device__ __forceinline__ unsigned long long finish(KlapWorkQueue* queue, KlapGridBlock& own,
                                                            unsigned long long item) {
  const unsigned int link = static_cast<unsigned int>(item), children = own.children, others = own.others;
  const bool is_one = is_one_block(item);
  KlapGridRecord* const record = grid_at(own.arrays.records, link);
  unsigned int tail = own.first_tail;
  const bool holds_stream = leave_null_stream(queue, own);
  own.children = 0;
  own.others = 0;
  own.first_tail = 0;
  own.last_tail = 0;
  // A grid of one block that launched nothing waits for nothing, and nobody else knows of it.
  if (is_one && children == 0) return complete(queue, own, link, tail);
  if (tail != 0) record->first_tail = tail;
  if (is_one && holds_stream && others == 0) {
    own.held |= KLAP_GRID_FLAGS(KLAP_GRID_IS_ONLY);
    return 0;
  }
  release();
  if (!count_off(queue, own, link, children - KLAP_GRID_PENDING_ITEM)) return 0;
  if (!is_one && launches(item)) tail = record->first_tail;
  return complete(queue, own, link, tail);
}

// Waits for an item that no block has yet; 0 if there will be no more. The block with the first number counts
// off the blocks of the grid that the host launched, which are done by now.
static __device__ __forceinline__ unsigned long long take(KlapWorkQueue* queue, KlapGridBlock& own) {
  const unsigned long long number = add_global(&queue->turns, 1ull);
  if (number == 0 && count_off(queue, own, 0, KLAP_GRID_ROOT_DONE)) {
    // This block has run nothing yet, so what `own` says of a grid is 0.
    const unsigned long long item = complete(queue, own, 0, queue->root_first_tail);
    if (item != 0) publish_item(queue, own.arrays, item);
  }
  unsigned long long* const at = own.arrays.items + (number & (own.arrays.places - 1));
  unsigned int pause = kShortestPause;
  unsigned long long ready = 0;
#pragma unroll 1
  for (unsigned int look = 1;; ++look) {
    unsigned int is_over = 0;
    unsigned long long now = ready;
    if (look % kLooksPerNews == 0) {
      is_over = load_relaxed(&queue->done);
      now = load_relaxed(&queue->ready_items);
    }
    const unsigned long long item = load_relaxed(at);
    if (item != 0) {
      acquire(at);
      clear(at);
      return item;
    }
    if (is_over != 0) return 0;
    __nanosleep(pause);
    pause = now != ready ? static_cast<unsigned int>(kShortestPause) : pause + kLongerPause;
    if (pause > kLongestPause) pause = kLongestPause;
    ready = now;
  }
}

// The next item: the one that may begin because this one is done, or the one that the block holds.
static __device__ __forceinline__ void next_item(KlapWorkQueue* queue, KlapGridBlock& own, Taken& taken) {
  unsigned long long next = taken.item != 0 ? finish(queue, own, taken.item) : 0;
  const unsigned long long held = own.held;
  own.held = 0;
  if (next == 0) {
    next = held;
  } else if (held != 0) {
    publish_item(queue, own.arrays, held);
  }
  if (next == 0) next = take(queue, own);
  taken.item = next;
  if (next == 0) return;
  KlapGridRecord* const record = grid_at(own.arrays.records, static_cast<unsigned int>(next));
  taken.size = *reinterpret_cast<const uint4*>(record);
  own.completes = record->completes;
  own.parent = record->parent;
  own.kind = KLAP_GRID_ITEM_KIND(next);
  // The block that completes the grid looks for the flags there.
  const bool is_begun = KLAP_GRID_ITEM_PART(next) != 0 || (own.kind & KLAP_GRID_TAKES_MORE) != 0;
  if ((own.kind & KLAP_GRID_IS_FINAL) != 0 && !is_begun) record->kind = own.kind;
#ifdef KLAP_HALVES
  if ((own.kind & KLAP_GRID_IS_FINAL) != 0 && !is_begun && record->behind == KLAP_GRID_SECOND_HALF)
    start_other_halves(queue, own.arrays, record);
#endif
}

// ---- bodies ----

static __device__ __forceinline__ void run_block(const unsigned char* arguments, unsigned int kernel,
                                                 const uint4& size, const uint3& at, KlapGridBlock* own) {
  const unsigned int thread = threadIdx.x;
  [[maybe_unused]] const uint3 launched =
      make_uint3(KLAP_GRID_BLOCK_X(size.w), KLAP_GRID_BLOCK_Y(size.w), KLAP_GRID_BLOCK_Z(size.w));
#define KLAP_KERNEL(number, width, height, depth, launches)                                    \
  if (kernel == number &&                                                                      \
      ((width) * (height) * (depth) == KLAP_THREADS || thread < (width) * (height) * (depth))) \
    __klap_child_body_##number(arguments, at.x, at.y, at.z, size.x, size.y, size.z,            \
                               (height) * (depth) == 1 ? thread : thread % (width),            \
                               (height) == 1 ? 0 : thread / (width) % (height),                \
                               (depth) == 1 ? 0 : thread / ((width) * (height)), width, height, depth, own);
  KLAP_KERNELS
#undef KLAP_KERNEL
  end_child_block();
}

// The position of a block in a grid whose blocks count by columns.
static __device__ __forceinline__ uint3 position_by_columns(const uint4& size, Linear linear) {
#ifdef KLAP_GRID_1D
  return make_uint3(linear, 0, 0);
#else
  const unsigned long long column = linear / size.z;
  return make_uint3(static_cast<unsigned int>(column / size.y), static_cast<unsigned int>(column % size.y),
                    static_cast<unsigned int>(linear % size.z));
#endif
}

// The position of the next block. A division would take longer than many a block.
static __device__ __forceinline__ void step(uint3& at, const uint4& size) {
  ++at.x;
#ifndef KLAP_GRID_1D
  if (at.x != size.x) return;
  at.x = 0;
  if (++at.y != size.y) return;
  at.y = 0;
  ++at.z;
#endif
}

static __device__ __forceinline__ KlapGridRecord* record_of(const KlapGridBlock& own, const Taken& taken) {
  return grid_at(own.arrays.records, static_cast<unsigned int>(taken.item));
}
static __device__ __forceinline__ unsigned long long blocks_of(const Taken& taken) {
  return static_cast<unsigned long long>(taken.size.x) * taken.size.y * taken.size.z;
}

// Runs an item. Tells whether it had the first block of its grid.
static __device__ __forceinline__ bool run_item(KlapWorkQueue* queue, KlapGridBlock& own, Share& share,
                                                const Taken& taken) {
  const unsigned char* const arguments =
      own.arrays.records + KLAP_WORK_ITEM_OFFSET(taken.item) + KLAP_ARGS_OFFSET;
  const unsigned int kernel = kKernels == 1 ? 0 : KLAP_GRID_ITEM_KERNEL(taken.item);
  const unsigned int part = KLAP_GRID_ITEM_PART(taken.item);
  const bool takes_more = (KLAP_GRID_ITEM_KIND(taken.item) & KLAP_GRID_TAKES_MORE) != 0;
  bool is_given = is_one_block(taken.item) || part != 0;  // the blocks to run are
  bool is_begun = is_given || takes_more, is_last = is_given && !takes_more;
  bool is_first = is_one_block(taken.item);
  const bool in_order = begins_in_order(taken.item), by_columns = begins_by_columns(taken.item);
  unsigned int count = part == 0 ? 1 : KLAP_GRID_ITEM_PART_SIZE(taken.item);
  Linear linear = part == 0 ? 0 : static_cast<Linear>(part - 1) * count;
  unsigned long long ahead = 0;
  if (threadIdx.x == 0) {
    share.has_begun = false;
    if (takes_more)
      ahead = take_ahead(queue, record_of(own, taken), blocks_of(taken), linear, in_order, share);
  }
#pragma unroll 1
  for (;;) {
    if (!is_given) {
      if (threadIdx.x == 0) {
        share.new_items = 0;
        if (is_begun) {
          next_share(queue, own, record_of(own, taken), blocks_of(taken), ahead, share);
        } else {
          first_share(queue, own, record_of(own, taken), blocks_of(taken), in_order, share);
        }
      }
      __syncthreads();
      put_new_items(own, share, taken.item);
      linear = static_cast<Linear>(share.first);
      count = share.count;
      is_last = share.is_last;
      if (count == 0) return is_first;
      is_first = is_first || linear == 0;
      if (threadIdx.x == 0 && !is_last)
        ahead =
            take_ahead(queue, record_of(own, taken), blocks_of(taken), share.first + count, in_order, share);
    }
    is_given = false;
    is_begun = true;
    // Left alone, the first warp would go on in parts: the first thread waits for what it asked for.
    __syncwarp();
    uint3 at = by_columns ? position_by_columns(taken.size, linear) : position_in(taken.size, linear);
#pragma unroll 1
    for (;;) {
      run_block(arguments, kernel, taken.size, at, &own);
      if (--count == 0) break;
      step(at, taken.size);
      if (!launches(taken.item)) continue;
      if (threadIdx.x == 0) leave_null_stream(queue, own);
      __syncthreads();
    }
    if (is_last) return is_first;
    // All have read the share before they came to the end of the block that they ran.
    if (threadIdx.x == 0) leave_null_stream(queue, own);
  }
}

// Counts this block out, for one thread of it; the last block leaves the queue empty for the next parent. The
// second fence acquires what the others released. So they have read the counters before these are reset.
static __device__ __forceinline__ void leave(KlapWorkQueue* queue, unsigned int children) {
  __threadfence();
  const unsigned long long leaving = static_cast<unsigned long long>(children) << 32 | 1u;
  const unsigned long long exited = add_global(&queue->exited, leaving) + leaving;
  if (static_cast<unsigned int>(exited) != gridDim.x) return;
  __threadfence();
  report_next(queue->report, KLAP_REPORT_CHILDREN, exited >> 32);
  queue->reserved = 0;
  queue->turns = 0;
  queue->ready_items = 0;
  for (unsigned long long& list : queue->free_records) list = 0;
  queue->root_pending = 0;
  queue->root_first_tail = 0;
  queue->root_last_tail = 0;
  queue->done = 0;
  queue->exited = 0;
}

extern "C" __global__ void KLAP_BOUNDS __klap_consumer(KlapWorkQueue* queue) {
  __shared__ Taken taken;
  __shared__ Share share;
  __shared__ KlapGridBlock own;
  const unsigned int thread = threadIdx.x;
  if (thread == 0) {
    own = {};
    own.arrays = arrays_of(queue);
    taken.item = 0;
  }
  unsigned int children = 0;  // begun by this block; in the first thread
#pragma unroll 1
  for (;;) {
    if (thread == 0) next_item(queue, own, taken);
    __syncthreads();
    if (taken.item == 0) break;
    if (run_item(queue, own, share, taken)) ++children;
    __syncthreads();  // all have read what was taken
  }
  if (thread == 0) leave(queue, children);
}
