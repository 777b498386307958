// A kernel that the executor runs executes this at its launch sites, and so does the parent that the host
// launches (executor.cu, grid_records.h).
//
// __klap_grid_reserve() replaces the request for an argument buffer. It takes a record and fills in its
// header. No record means one of two things. CUDA refuses such a launch: then the program's own call runs,
// which has the native error. Or too many launches are pending, as CUDA also says: then the program gets no
// buffer.
//
// __klap_grid_publish() replaces the launch. The grid takes its place in its stream at this moment. So a
// launch that the program orders behind another one by any synchronisation comes behind it here as well.
// Lanes that launch in one instruction have no order; in the NULL stream they take that of their numbers, if
// they are together (transform/text/lanes_apart.h). Where they add a constant to one word, each does so by
// itself: ptxas makes one atomic of these.
//
// The older pair of calls names the grid in the second one only. __klap_grid_take_buffer() replaces the first
// and __klap_grid_launch() the second. A program does not test such a buffer, so without a record it gets one
// that nobody reads.
//
// `self` is the address of the launching grid's own arguments. It is 0 in the parent that the host launches:
// nothing that it launches begins before it is complete, so there are neither fences nor grids that are
// complete already.
//
// Constants: KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES, the layout of the records; KLAP_COPIES if some kernel
// copies or fills memory, or uses events (copy_record.h, event_record.h).
#include "common/warp.h"
#include "executor/child_barrier.h"
#include "executor/grid_queue.h"

enum : unsigned int {  // of cudaError_t
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kLaunchPendingCountExceeded = 69
};

// Words of 64 bits: the compiler would store smaller ones together.
struct KlapGridRoom {
  unsigned long long arguments;  // where to store the child's arguments; 0: there is no record
  unsigned long long item;
  unsigned long long refused;  // the program gets no buffer
};

static __device__ __forceinline__ unsigned int lane_id() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// The thread's queue, and where it finds the arrays without waiting.
struct Place {
  KlapWorkQueue* queue;
  unsigned long long self;
  KlapGridBlock* block;
  KlapGridArrays arrays;

  __device__ __forceinline__ Place(KlapWorkQueue* of, unsigned long long own, KlapGridBlock* of_block)
      : queue(of), self(own), block(of_block), arrays(own == 0 ? arrays_of(of) : of_block->arrays) {}
  __device__ __forceinline__ bool is_in_parent() const { return self == 0; }
  __device__ __forceinline__ KlapGridRecord* at(unsigned int link) const {
    return grid_at(arrays.records, link);
  }
  // The link of the record at that address.
  __device__ __forceinline__ unsigned int link_of(unsigned long long address) const {
    const unsigned long long begin = reinterpret_cast<unsigned long long>(arrays.records);
    return static_cast<unsigned int>((address - begin) / 16 + 1);
  }
  // The link of the launching grid.
  __device__ __forceinline__ unsigned int own_link() const {
    return self == 0 ? 0 : link_of(self - KLAP_ARGS_OFFSET);
  }
};

// The link of the record with that number.
static __device__ __forceinline__ unsigned int link_of_record(const KlapWorkQueue* queue,
                                                              unsigned int number) {
  return number * (KLAP_RECORD_BYTES / 16) + 1 + place_of_part(queue->places, number);
}

// A record that nobody has had yet; 0 if there is none.
static __device__ __forceinline__ unsigned int new_record(KlapWorkQueue* queue) {
  const unsigned long long number = add_global(&queue->reserved, 1ull);
  if (number + 1 >= queue->record_capacity) return 0;  // nobody gets the last one
  return link_of_record(queue, static_cast<unsigned int>(number));
}

// The block's own records come first, which nobody else has to be asked for. Nothing is put there while the
// block's threads run.
static __device__ __forceinline__ unsigned int find_record(const Place& place) {
  if (place.is_in_parent()) return new_record(place.queue);
  const int kept =
      static_cast<int>(add_in_block(reinterpret_cast<unsigned int*>(&place.block->free), ~0u)) - 1;
  if (kept >= 0) return place.block->free_records[kept];
  const unsigned int link = new_record(place.queue);
  return link != 0 ? link : take_back(place.queue, place.arrays.records);
}

static __device__ __forceinline__ bool is_refused_by_cuda(const dim3& grid, const dim3& block,
                                                          unsigned int most_threads) {
  if (grid.x - 1u >= 0x7fffffffu || grid.y - 1u >= 65535u || grid.z - 1u >= 65535u) return true;
  if (block.x - 1u >= 1024u || block.y - 1u >= 1024u || block.z - 1u >= 64u) return true;
  return block.x * block.y * block.z > most_threads;
}

// The object of that handle, a stream or an event, which takes the place of a record. Null if none is there.
template <class Object>
static __device__ __forceinline__ Object* object_of(const Place& place, unsigned long long handle,
                                                    unsigned int kind) {
  const unsigned long long offset = handle - reinterpret_cast<unsigned long long>(place.arrays.records);
  const unsigned int unit = static_cast<unsigned int>(offset / KLAP_WORK_UNIT);
  if (offset != unit * KLAP_WORK_UNIT) return nullptr;
  constexpr unsigned int kUnits = KLAP_RECORD_BYTES / KLAP_WORK_UNIT;  // of a record
  const unsigned int in_part = unit_in_part(place.queue->places, unit, kUnits);
  if (in_part >= place.queue->record_capacity * kUnits || in_part % kUnits != 0) return nullptr;
  Object* const object = reinterpret_cast<Object*>(place.arrays.records + offset);
  // A handle may come from another thread by a shuffle, which orders no memory. So a load may find what was
  // there before, but an atomic finds the newest value.
  if (load_in_block(&object->kind) == kind) return object;
  return add_global(&object->kind, 0u) == kind ? object : nullptr;
}

static __device__ __forceinline__ KlapGridStream* stream_of(const Place& place, unsigned long long handle) {
  return object_of<KlapGridStream>(place, handle, KLAP_GRID_STREAM);
}

// The stream that a launch is ordered in. `null_stream` is what a handle of 0 means.
static __device__ __forceinline__ unsigned int resolve(const Place& place, unsigned int stream,
                                                       unsigned long long handle, unsigned int null_stream) {
  if (stream != KLAP_STREAM_HANDLE) return stream;
  if (handle == 0) return null_stream;
  if (handle == 1) return KLAP_STREAM_BLOCK;
  if (handle == 2) return KLAP_STREAM_THREAD;
  if (handle == 3) return KLAP_STREAM_TAIL;
  if (handle == 4) return KLAP_STREAM_NONE;
  return stream_of(place, handle) != nullptr ? KLAP_STREAM_CREATED : KLAP_STREAM_INVALID;
}

// Fills in the header of a record, and returns the grid's item.
static __device__ __forceinline__ unsigned long long fill_header(const Place& place, unsigned int link,
                                                                 const dim3& grid, const dim3& block,
                                                                 unsigned int kernel, unsigned int stream) {
  KlapGridRecord* const record = place.at(link);
  const bool is_one = static_cast<unsigned long long>(grid.x) * grid.y * grid.z == 1;
  const bool has_stream = stream != KLAP_STREAM_NONE && stream != KLAP_STREAM_TAIL;
  const unsigned int kind = KLAP_GRID_KIND(kernel) | (is_one ? KLAP_GRID_IS_ONE_BLOCK : 0) |
                            (stream == KLAP_STREAM_NONE ? KLAP_GRID_IS_FINAL : 0);
  record->grid_x = grid.x;
  record->grid_y = grid.y;
  record->grid_z = grid.z;
  record->block = KLAP_GRID_BLOCK(block.x, block.y, block.z);
  record->behind = stream == KLAP_STREAM_SECOND_HALF ? KLAP_GRID_SECOND_HALF
                   : has_stream                      ? 0
                                                     : KLAP_GRID_NOTHING;
  record->parent = place.own_link();
  record->completes = link;
  record->pending = KLAP_GRID_PENDING_ITEM;
  record->first_tail = 0;
  record->last_tail = 0;
  record->next = 0;
  record->next_block = 0;
  record->kind = kind;
  return KLAP_GRID_ITEM(kind, link);
}

extern "C" __device__ KlapGridRoom __klap_grid_reserve(KlapWorkQueue* queue, unsigned long long self,
                                                       KlapGridBlock* of_block, unsigned int grid_x,
                                                       unsigned int grid_y, unsigned int grid_z,
                                                       unsigned int block_x, unsigned int block_y,
                                                       unsigned int block_z, unsigned int most_threads,
                                                       unsigned int kernel, unsigned int of_stream) {
  const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
  const Place place(queue, self, of_block);
  // The program may compute a handle behind this call. Until it is known, the stream counts as one with an
  // order.
  const unsigned int stream = of_stream == KLAP_STREAM_HANDLE ? KLAP_STREAM_CREATED : of_stream;
  if (is_refused_by_cuda(grid, block, most_threads)) return {0, 0, 0};
  const unsigned int link = find_record(place);
  if (link == 0) return {0, 0, 1};
  const unsigned long long item = fill_header(place, link, grid, block, kernel, stream);
  return {reinterpret_cast<unsigned long long>(place.at(link)) + KLAP_ARGS_OFFSET, item, 0};
}

// The block runs this item next, and gives the one to others that it held before. That one may be the first
// of the block's stream. Its record will be used again, maybe for an item that the block holds then.
static __device__ __forceinline__ void hold(const Place& place, unsigned long long item) {
  const unsigned long long before = exchange_in_block(&place.block->held, item);
  if (before == 0) return;
  compare_and_swap_in_block(&place.block->first, static_cast<unsigned int>(before), 0u);
  publish_item(place.queue, place.arrays, before);
}

// Threads may look for the first launch of the block's stream while another one makes it.
static __device__ __forceinline__ volatile unsigned int* first_of_block(const Place& place) {
  return &place.block->first;
}

// Appends a grid to the block's NULL stream while the block holds the first one of it. It is taken out in the
// meantime, so that no other thread makes it ready. False if the block does not hold it any more.
static __device__ __forceinline__ bool append_privately(const Place& place, unsigned int before,
                                                        unsigned long long item) {
  const unsigned int first = *first_of_block(place);
  if (first == 0) return false;
  const unsigned long long held = exchange_in_block(&place.block->held, 0ull);
  const bool is_first = static_cast<unsigned int>(held) == first;
  if (is_first) place.at(before)->behind = item;
  if (held != 0) hold(place, held);
  return is_first;
}

// Appends a grid behind the one before it in its stream. True if that one is complete. It may not have been
// counted yet, so that its parent waits for it beside the stream that goes on with this grid.
static __device__ __forceinline__ bool append(const Place& place, unsigned int before,
                                              unsigned long long item) {
  if (before == 0) return true;
  if (place.is_in_parent()) {
    place.at(before)->behind = item;
    return false;
  }
  if (exchange_behind(place.at(before), item) != KLAP_GRID_COMPLETE) return false;
  add_in_block(&place.block->others, 1u);
  give_back(place.queue, place.arrays.records, before);
  return true;
}

// Appends the grids of all lanes that are here together to the block's NULL stream. True for the lane, the
// first one, whose grid may begin.
static __device__ __forceinline__ bool append_to_block(const Place& place, unsigned long long item) {
  const unsigned int mask = lanes_together(), lane = lane_id();
  const unsigned int higher = mask & ~((2u << lane) - 1u);
  const unsigned int lowest = static_cast<unsigned int>(__ffs(mask)) - 1u, highest = 31u - __clz(mask);
  const unsigned long long next = __shfl_sync(mask, item, higher != 0 ? __ffs(higher) - 1u : lane);
  const unsigned int last = __shfl_sync(mask, static_cast<unsigned int>(item), highest);
  if (higher != 0) place.at(static_cast<unsigned int>(item))->behind = next;
  __syncwarp(mask);
  // The lane that appends them acquires by this what the one before has written.
  unsigned int before = 0;
  if (lane == lowest) before = exchange_in_block(&place.block->last, last);
  // No lane goes on before its grid has its place: its next launch could come before it.
  __syncwarp(mask);
  if (lane != lowest) return false;
  if (before != 0 && !place.is_in_parent() && append_privately(place, before, item)) return false;
  return append(place, before, item);
}

// Appends a grid to a stream that the program created. True if the grid may begin.
static __device__ __forceinline__ bool append_to_created(const Place& place, KlapGridStream* stream,
                                                         unsigned long long item) {
  release();
  const unsigned int before = exchange_global(&stream->last, static_cast<unsigned int>(item));
  acquire(&stream->last);
  return append(place, before, item);
}

// Tail launches begin when the launching grid and all else that it launches is done: until then nobody reads
// the list. The blocks of a grid of several share it.
static __device__ __forceinline__ void append_tail(const Place& place, unsigned int link) {
  unsigned int before;
  unsigned int* first = nullptr;
  if (!place.is_in_parent() && (place.block->kind & KLAP_GRID_IS_ONE_BLOCK) != 0) {
    before = exchange_in_block(&place.block->last_tail, link);
    first = &place.block->first_tail;
  } else {
    const unsigned int parent = place.own_link();
    release();
    unsigned int* const last = last_tail_of(place.queue, place.arrays.records, parent);
    before = exchange_global(last, link);
    acquire(last);
    first = first_tail_of(place.queue, place.arrays.records, parent);
  }
  if (before == 0) {
    *first = link;
  } else {
    place.at(before)->next = link;
  }
}

// The launching grid is complete only when this one is.
static __device__ __forceinline__ void count_at_parent(const Place& place, unsigned int stream) {
  if (place.is_in_parent()) {
    add_global(&place.queue->root_pending, 1ull);
  } else {
    add_in_block(&place.block->children, 1u);
    if (stream != KLAP_STREAM_BLOCK) add_in_block(&place.block->others, 1u);
  }
}

// Makes a grid of the parent's ready. No place has been used before, and all places are there. When it
// begins, the parent is complete, and with it all its streams. Others may still launch into those that it has
// created.
static __device__ __forceinline__ void start_later(const Place& place, unsigned long long item,
                                                   unsigned int stream) {
  const unsigned long long number = add_global(&place.queue->ready_items, 1ull);
  place.arrays.items[number] = item | KLAP_GRID_FLAGS(stream == KLAP_STREAM_CREATED ? 0 : KLAP_GRID_IS_FINAL);
}

// Starts a grid. The block itself runs the last small grid that it starts, when it is done with its own. So a
// sequence of single launches needs no other block.
static __device__ __forceinline__ void start_now(const Place& place, unsigned long long item,
                                                 unsigned int stream) {
  if ((KLAP_GRID_ITEM_KIND(item) & KLAP_GRID_IS_ONE_BLOCK) == 0) {
    publish_item(place.queue, place.arrays, item);
    return;
  }
  if (stream == KLAP_STREAM_BLOCK) *first_of_block(place) = static_cast<unsigned int>(item);
  hold(place, item);
}

// Puts a grid into its stream. `last` is the thread's last launch in its own stream; returns the new one.
static __device__ __forceinline__ unsigned long long publish(const Place& place, unsigned long long item,
                                                             unsigned long long last, unsigned int stream,
                                                             unsigned long long handle) {
  const unsigned int link = static_cast<unsigned int>(item);
  if (stream == KLAP_STREAM_TAIL || stream == KLAP_STREAM_SECOND_HALF) {
    append_tail(place, link);
    return last;
  }
  count_at_parent(place, stream);
  bool starts = true;
  if (stream == KLAP_STREAM_BLOCK) starts = append_to_block(place, item);
  if (stream == KLAP_STREAM_THREAD) starts = append(place, static_cast<unsigned int>(last), item);
  if (stream == KLAP_STREAM_CREATED) starts = append_to_created(place, stream_of(place, handle), item);
  if (starts && place.is_in_parent()) start_later(place, item, stream);
  if (starts && !place.is_in_parent()) start_now(place, item, stream);
  return stream == KLAP_STREAM_THREAD ? link : last;
}

// The answer to a call that goes into a stream.
struct KlapGridQueued {
  unsigned long long last;   // the thread's last launch in its own stream, now
  unsigned long long error;  // of cudaError_t
};

extern "C" __device__ KlapGridQueued __klap_grid_publish(KlapWorkQueue* queue, unsigned long long self,
                                                         KlapGridBlock* block, unsigned long long item,
                                                         unsigned long long last, unsigned int of_stream,
                                                         unsigned long long handle,
                                                         unsigned int null_stream) {
  const Place place(queue, self, block);
  const unsigned int stream = resolve(place, of_stream, handle, null_stream);
  const unsigned int link = static_cast<unsigned int>(item);
  if (stream == KLAP_STREAM_INVALID) {
    give_back(queue, place.arrays.records, link);
    return {last, kInvalidValue};
  }
  // Its header is that of a stream with an order.
  if (of_stream == KLAP_STREAM_HANDLE && (stream == KLAP_STREAM_NONE || stream == KLAP_STREAM_TAIL)) {
    place.at(link)->behind = KLAP_GRID_NOTHING;
    if (stream == KLAP_STREAM_NONE) item |= KLAP_GRID_FLAGS(KLAP_GRID_IS_FINAL);
  }
  return {publish(place, item, last, stream, handle), kSuccess};
}

extern "C" __device__ KlapGridRoom __klap_grid_take_buffer(KlapWorkQueue* queue, unsigned long long self,
                                                           KlapGridBlock* of_block) {
  const Place place(queue, self, of_block);
  const unsigned int link = find_record(place);
  // Arguments that are never read go to the last record.
  const unsigned int to = link != 0 ? link : link_of_record(queue, queue->record_capacity - 1);
  return {reinterpret_cast<unsigned long long>(place.at(to)) + KLAP_ARGS_OFFSET, link, link == 0};
}

struct KlapGridLaunched {
  unsigned long long last, error;  // as above
  unsigned long long is_own;       // the program's own call makes the launch, which CUDA refuses
};

extern "C" __device__ KlapGridLaunched __klap_grid_launch(
    KlapWorkQueue* queue, unsigned long long self, KlapGridBlock* of_block, unsigned long long taken,
    unsigned long long last, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int most_threads,
    unsigned int kernel, unsigned int of_stream, unsigned long long handle, unsigned int null_stream) {
  const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
  const Place place(queue, self, of_block);
  const unsigned int link = static_cast<unsigned int>(taken);
  const unsigned int stream = resolve(place, of_stream, handle, null_stream);
  const bool is_own = is_refused_by_cuda(grid, block, most_threads);
  if (is_own || stream == KLAP_STREAM_INVALID) {
    if (link != 0) give_back(queue, place.arrays.records, link);
    return {last, is_own ? kSuccess : kInvalidValue, is_own};
  }
  if (link == 0) return {last, kLaunchPendingCountExceeded, 0};
  const unsigned long long item = fill_header(place, link, grid, block, kernel, stream);
  return {publish(place, item, last, stream, handle), kSuccess, 0};
}

// Nothing more comes into a stream whose last launch is `last`.
static __device__ __forceinline__ void end_stream(const Place& place, unsigned int last) {
  if (last == 0) return;
  if (place.is_in_parent()) {
    place.at(last)->behind = KLAP_GRID_NOTHING;
  } else if (exchange_behind(place.at(last), KLAP_GRID_NOTHING) == KLAP_GRID_COMPLETE) {
    give_back(place.queue, place.arrays.records, last);
  }
}

// The thread of a grid that the executor runs leaves its own stream.
extern "C" __device__ void __klap_grid_leave_stream(KlapWorkQueue* queue, unsigned long long self,
                                                    KlapGridBlock* block, unsigned long long last) {
  end_stream(Place(queue, self, block), static_cast<unsigned int>(last));
}

// ---- streams that the program creates ----

// In place of the program's call that creates a stream. Writes its handle and returns the error.
extern "C" __device__ unsigned int __klap_grid_create_stream(KlapWorkQueue* queue, unsigned long long self,
                                                             KlapGridBlock* block,
                                                             unsigned long long* handle) {
  const Place place(queue, self, block);
  const unsigned int link = find_record(place);
  if (link == 0) return kMemoryAllocation;
  KlapGridStream* const stream = reinterpret_cast<KlapGridStream*>(place.at(link));
  store_relaxed(&stream->last, 0u);
  store_relaxed(&stream->kind, KLAP_GRID_STREAM);
  *handle = reinterpret_cast<unsigned long long>(stream);
  return kSuccess;
}

// In place of the call that destroys one. What was launched into the stream goes on.
extern "C" __device__ unsigned int __klap_grid_destroy_stream(KlapWorkQueue* queue, unsigned long long self,
                                                              KlapGridBlock* block,
                                                              unsigned long long handle) {
  const Place place(queue, self, block);
  KlapGridStream* const stream = stream_of(place, handle);
  if (stream == nullptr) return kInvalidValue;
  release();
  const unsigned int last = exchange_global(&stream->last, 0u);
  acquire(&stream->last);
  stream->kind = 0;
  end_stream(place, last);
  give_back(queue, place.arrays.records, place.link_of(handle));
  return kSuccess;
}

#ifdef KLAP_COPIES
#include "executor/copy_record.h"
#include "executor/event_record.h"
#endif
