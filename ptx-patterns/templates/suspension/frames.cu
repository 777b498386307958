// Memory for the frames of blocks that stop (transform/suspension/split_kernel.h).
//
// A kernel's malloc takes 8 us on an H200, and 100 us where all multiprocessors call it at once. A block
// stops and goes on in less than that. So frames are cut from chunks of the heap, and those that nobody has
// any more wait for the next block that stops.
//
// Frames have one of 49 sizes. The frames of a size that were cut by the same group of multiprocessors come
// back to one row of words:
//
//   | slot | slot | slot | list |
//
// A slot holds one frame or none. One exchange takes it and one compare-and-swap fills it, whatever happened
// to the slot before. Others go to the list, whose word has the first frame's address and a number that
// changes with each change. So a swap fails if the list was changed between. A thread would have to sleep
// through a multiple of 4 million changes to be wrong about that.
//
// A group's open chunk is one word, too: its address and how much is cut. Chunks are never freed, so a word
// that comes again means the same.
//
// What is taken from the heap is counted, which is rare (parents/frame_memory.h). Blocks that stop are not:
// an atomic for each would cost more than the page is worth that it ends in.
//
// Frames that are too large for a chunk are allocated each for itself. Those beyond the largest size, and
// addresses that do not fit into a word, go back to the heap at once. If the heap is full, a larger frame
// that waits in any row will do.
#include "common/memory_order.h"
#include "suspension/frame.h"

typedef unsigned long long KlapWord;

enum : unsigned int {
  kGroups = 32,
  kSlots = 3,
  kUnitLog = 6,
  kSmallestLog = 8,
  kLargestLog = 20,
  kSizes = 1 + 4 * (kLargestLog - kSmallestLog),  // four to each power of two
  kOfHeap = 0xffffffffu,                          // in place of a row
};
enum : KlapWord {
  kUnit = 1ull << kUnitLog,  // sizes are multiples of it, and frames are aligned to it
  kSmallest = 1ull << kSmallestLog,
  kLargest = 1ull << kLargestLog,
  kChunk = 256 << 10,
  kLargestCut = kChunk / 4,
  kAddressBits = 48,
  // A list's word: the address in units, and above it the number.
  kNumber = 1ull << (kAddressBits - kUnitLog),
  // A chunk's word: how many units are cut, and above them the address in units.
  kCut = 1ull << 16,
};

struct alignas(32) KlapFrameRow {
  KlapWord slots[kSlots], list;
};
static __device__ KlapFrameRow rows[kGroups * kSizes];
static __device__ KlapWord open_chunks[kGroups];
// Null if nobody asks. All units of a module have it in common (transform/suspension/frame_functions.h).
extern "C" {
__device__ KlapWord* __klap_frame_counts;
}

static __device__ __forceinline__ void count(unsigned int what, KlapWord more) {
  KlapWord* const counts = __klap_frame_counts;
  if (counts != nullptr) atomicAdd(counts + what, more);
}

static __device__ __forceinline__ unsigned int own_group() {
  unsigned int processor;
  asm("mov.u32 %0, %%smid;" : "=r"(processor));
  return processor % kGroups;
}

// The smallest size that has room for so many bytes, which become those of that size.
static __device__ __forceinline__ unsigned int size_for(KlapWord& bytes) {
  if (bytes <= kSmallest) {
    bytes = kSmallest;
    return 0;
  }
  const unsigned int last = static_cast<unsigned int>(bytes) - 1;
  const unsigned int shift = 29 - __clz(last);  // leaves three bits, the highest one set
  const unsigned int steps = last >> shift;
  bytes = static_cast<KlapWord>(steps + 1) << shift;
  return 1 + 4 * (shift + 2 - kSmallestLog) + (steps & 3);
}

static __device__ __forceinline__ KlapWord word_of(const KlapFrame* frame) {
  return reinterpret_cast<KlapWord>(frame) >> kUnitLog;
}
static __device__ __forceinline__ KlapFrame* frame_of(KlapWord word) {
  return reinterpret_cast<KlapFrame*>((word & (kNumber - 1)) << kUnitLog);
}
static __device__ __forceinline__ KlapWord next_number(KlapWord word) {
  return (word & ~(kNumber - 1)) + kNumber;
}

static __device__ __forceinline__ KlapFrame* begin_frame(void* memory, unsigned int row) {
  KlapFrame* const frame = static_cast<KlapFrame*>(memory);
  store_relaxed(&frame->place, row);
  return frame;
}

// ---- rows ----

static __device__ __forceinline__ KlapFrame* take_from_list(KlapWord* list, KlapWord word) {
#pragma unroll 1
  while (frame_of(word) != nullptr) {
    acquire(list);
    KlapFrame* const frame = frame_of(word);
    const KlapWord next = load_relaxed(&frame->next);
    const KlapWord found = compare_and_swap_global(list, word, next_number(word) | next);
    if (found == word) {
      acquire(list);
      return frame;
    }
    word = found;
  }
  return nullptr;
}

// All words are loaded at once, which takes as long as loading one.
static __device__ __noinline__ KlapFrame* take_from_row(KlapFrameRow* row) {
  unsigned int full = 0;
#pragma unroll
  for (unsigned int i = 0; i < kSlots; ++i) full |= load_relaxed(&row->slots[i]) != 0 ? 1u << i : 0;
  const KlapWord list = load_relaxed(&row->list);
#pragma unroll 1
  for (; full != 0; full &= full - 1) {
    KlapWord* const slot = &row->slots[__ffs(full) - 1];
    const KlapWord word = exchange_global(slot, 0ull);
    if (word == 0) continue;
    acquire(slot);
    return frame_of(word);
  }
  return take_from_list(&row->list, list);
}

static __device__ __forceinline__ void add_to_list(KlapWord* list, KlapFrame* frame) {
  KlapWord before = load_relaxed(list);
#pragma unroll 1
  for (;;) {
    store_relaxed(&frame->next, before & (kNumber - 1));
    release();
    const KlapWord found = compare_and_swap_global(list, before, next_number(before) | word_of(frame));
    if (found == before) return;
    before = found;
  }
}

// ---- the heap ----

// Memory for so many bytes from a multiple of the unit on; null if there is none, or no word has room for it.
static __device__ __forceinline__ void* allocate(KlapWord bytes) {
  void* const memory = malloc(bytes + kUnit);
  if (reinterpret_cast<KlapWord>(memory) + bytes + kUnit < 1ull << kAddressBits) return memory;
  free(memory);
  return nullptr;
}
static __device__ __forceinline__ KlapWord first_unit(const void* memory) {
  return (reinterpret_cast<KlapWord>(memory) + kUnit - 1) / kUnit * kUnit;
}

static __device__ __forceinline__ KlapFrame* of_heap(KlapWord bytes) {
  void* const memory = malloc(bytes);
  if (memory == nullptr) return nullptr;
  count(KLAP_FRAME_BYTES_TAKEN, bytes);
  static_cast<KlapFrame*>(memory)->heap_bytes = bytes;
  return begin_frame(memory, kOfHeap);
}

// A piece of the group's open chunk, or of a new one; 0 if there is none. Of two threads that open one, the
// second one gives its chunk back.
static __device__ __forceinline__ KlapWord cut(KlapWord* open, KlapWord bytes) {
  const KlapWord units = bytes / kUnit;
  KlapWord word = load_relaxed(open);
#pragma unroll 1
  for (;;) {
    const KlapWord from = word % kCut, chunk = word / kCut * kUnit;
    if (chunk != 0 && from + units <= kChunk / kUnit) {
      const KlapWord found = compare_and_swap_global(open, word, word + units);
      if (found == word) return chunk + from * kUnit;
      word = found;
      continue;
    }
    void* const made = allocate(kChunk);
    if (made == nullptr) return 0;
    const KlapWord found = compare_and_swap_global(open, word, first_unit(made) / kUnit * kCut + units);
    if (found == word) {
      count(KLAP_FRAME_BYTES_TAKEN, kChunk + kUnit);
      return first_unit(made);
    }
    free(made);
    word = found;
  }
}

// A frame that waits in any row for a size that is large enough.
static __device__ __noinline__ KlapFrame* take_from_any(unsigned int size) {
#pragma unroll 1
  for (; size < kSizes; ++size) {
#pragma unroll 1
    for (unsigned int group = 0; group < kGroups; ++group) {
      KlapFrame* const frame = take_from_row(&rows[group * kSizes + size]);
      if (frame != nullptr) return frame;
    }
  }
  return nullptr;
}

// A frame's own allocation; 0 if there is none.
static __device__ __forceinline__ KlapWord allocate_alone(KlapWord bytes) {
  void* const memory = allocate(bytes);
  if (memory != nullptr) count(KLAP_FRAME_BYTES_TAKEN, bytes + kUnit);
  return first_unit(memory);
}

static __device__ __noinline__ KlapFrame* new_frame(unsigned int group, unsigned int size, KlapWord bytes) {
  const KlapWord memory = bytes <= kLargestCut ? cut(&open_chunks[group], bytes) : allocate_alone(bytes);
  if (memory != 0) return begin_frame(reinterpret_cast<void*>(memory), group * kSizes + size);
  KlapFrame* const frame = of_heap(bytes);
  return frame != nullptr ? frame : take_from_any(size);
}

// ---- what split kernels call, a thread of a block at a time ----

static __device__ __noinline__ KlapFrame* with_count(KlapFrame* frame) {
  if (frame != nullptr) return frame;
  count(KLAP_FRAME_REFUSED, 1);
  __threadfence_system();  // the kernel may end with an error now
  return nullptr;
}

// Null if there is no memory.
extern "C" __device__ void* __klap_take_frame(KlapWord bytes) {
  if (bytes > kLargest) return with_count(of_heap(bytes));
  const unsigned int size = size_for(bytes), group = own_group();
  KlapFrame* const frame = take_from_row(&rows[group * kSizes + size]);
  return frame != nullptr ? frame : with_count(new_frame(group, size, bytes));
}

// The caller has seen all threads of the block take what they left in the frame.
extern "C" __device__ void __klap_give_frame(void* memory) {
  KlapFrame* const frame = static_cast<KlapFrame*>(memory);
  const unsigned int place = load_relaxed(&frame->place);
  if (place == kOfHeap) {
    count(KLAP_FRAME_BYTES_RETURNED, frame->heap_bytes);
    free(memory);
    return;
  }
  KlapFrameRow& row = rows[place];
  release();
#pragma unroll 1
  for (unsigned int i = 0; i < kSlots; ++i) {
    if (compare_and_swap_global(&row.slots[i], 0ull, word_of(frame)) == 0) return;
  }
  add_to_list(&row.list, frame);
}
