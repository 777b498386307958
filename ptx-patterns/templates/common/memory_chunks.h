// Chunks of the device's heap from which warps of several multiprocessors cut small requests.
//
// The device's own malloc takes about a microsecond and serves one thread at a time. A chunk is one call of
// it for many warps:
//
//   | KlapPiece of the chunk | KlapPiece | memory of a lane | KlapPiece | memory of the next lane | ...
//
// A slot is one word with the whole state of the chunk that is open for its multiprocessors: the address, how
// much is taken, the sizes of this chunk and of the next one, and whether a thread is opening that. Whoever
// swaps a new word in for the one that it saw has cut a region, opened a chunk or closed it. Compare-and-swap
// cannot overflow a field. A thread may see a word, sleep, and find that word there again after other ones.
// Then everything that the word says is true again, so its swap does no harm.
//
// Requests that do not fit wait while another thread opens the next chunk. They wait a limited time, and then
// make an allocation of their own. So nothing depends on that thread's progress.
//
// **Sizes.** A chunk is twice as large as the one before it in its slot. A group may take a half of a new
// one at most; else it makes its own allocation, and the next chunk is to be larger. So the unused rest of a
// chunk is rarely more than what its slot has given out. All open chunks together take at most two megabytes.
//
// **Freeing.** The chunk's count begins with zero. Each piece that is freed adds its units, and whoever
// closes the chunk subtracts all units that were given out. Only one swap takes an address out of its slot,
// so it is closed once. Before that the count is a sum of freed pieces, and no addition makes it zero. Behind
// it the count is minus the pieces in use. The addition that makes it zero is the last one of all, and its
// thread frees the chunk.
//
// A chunk all of whose pieces have been freed does not stay open. Whoever frees a piece of an open chunk
// compares the count with the slot's word. It reads both by atomics, which never see an older value than the
// one that is there, and each piece was cut before it was freed. So the thread that frees the last piece sees
// the last cut, and closes the chunk. It may be wrong only where the chunk is no longer the one of its piece,
// and to close an open chunk is always right.
//
// **A full heap.** No lane is refused while there is room in any open chunk: who gets nothing from the device
// looks through all slots. It tries both twice, because a chunk may be freed in between. Where the device has
// no room for a chunk, the next one to be tried is a small one.
#ifndef KLAP_MEMORY_CHUNKS_H
#define KLAP_MEMORY_CHUNKS_H

#include "common/memory_order.h"

enum : unsigned int {
  kSlots = 32,
  kLargestSize = 3,      // sizes are numbers from 0
  kShortestPause = 32,   // nanoseconds
  kLongestPause = 1024,  // nanoseconds
  kMostPauses = 256,     // for about a quarter of a millisecond
  kMostLastPauses = kMostPauses << 8,
};

enum : KlapBytes {
  kUnit = sizeof(KlapPiece),
  kSmallestChunk = 8192 / kUnit,
  // A slot's word, from its lowest bit: 13 bits for the units taken, the chunk's own header among them.
  kTaken = (1 << 13) - 1,
  kIsOpening = 1 << 13,
  kNextSize = 1 << 14,  // 2 bits
  kSize = 1 << 16,      // 2 bits
  kAddress = 1 << 18,   // 46 bits, in units; zero if no chunk is open
  // A piece's header in place of an address: the marker, 13 bits for the units from the chunk's header to the
  // piece's, 13 for its own units, and the slot.
  kIsOfChunk = 1,
  kOffset = 1 << 4,
  kUnits = 1 << 17,
  kSlot = 1 << 30,
};
static_assert((kSmallestChunk << kLargestSize) <= kTaken, "a full chunk's units have room in a word");

static __device__ KlapBytes chunk_slots[kSlots];

static __device__ __forceinline__ KlapBytes chunk_units(KlapBytes size) { return kSmallestChunk << size; }
static __device__ __forceinline__ KlapPiece* chunk_of(KlapBytes word) {
  return reinterpret_cast<KlapPiece*>(word / kAddress * kUnit);
}
static __device__ __forceinline__ KlapBytes taken_of(KlapBytes word) { return word & kTaken; }
static __device__ __forceinline__ KlapBytes size_of(KlapBytes word) { return word / kSize & 3; }
static __device__ __forceinline__ KlapBytes next_size_of(KlapBytes word) { return word / kNextSize & 3; }
static __device__ __forceinline__ bool has_room(KlapBytes word, KlapBytes units) {
  return chunk_of(word) != nullptr && taken_of(word) + units <= chunk_units(size_of(word));
}
// The word without its chunk; the next one will be of that size.
static __device__ __forceinline__ KlapBytes without_chunk(KlapBytes word, KlapBytes next_size) {
  return (word & kIsOpening) + next_size * kNextSize;
}

// With acquire: what the thread that opened the chunk wrote is there.
static __device__ __forceinline__ KlapBytes swap_word(KlapBytes* slot, KlapBytes seen, KlapBytes word) {
  KlapBytes before;
  asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(slot)), "l"(seen), "l"(word)
               : "memory");
  return before;
}

// Adds to the chunk's count, and frees it if nothing is in use any more. Returns the new count.
static __device__ __forceinline__ KlapBytes count_units(KlapPiece* chunk, KlapBytes units) {
  KlapBytes before;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(&chunk->in_use)), "l"(units)
               : "memory");
  if (before + units == 0) __klap_native_free(chunk);
  return before + units;
}

// By the thread that took this word out of its slot.
static __device__ __forceinline__ void close_chunk(KlapBytes word) {
  count_units(chunk_of(word), 1 - taken_of(word));
}

// ---- taking ----

// Opens the slot's next chunk, whose first units are this thread's, and closes the one before it. Returns the
// word of the new chunk before these units were taken, or 0 if there is no memory for it. Nobody but this
// thread may do so now: it has set kIsOpening. But others may still cut from the old chunk, or close it.
static __device__ __forceinline__ KlapBytes open_chunk(KlapBytes* slot, KlapBytes size, KlapBytes units) {
  const KlapBytes memory = reinterpret_cast<KlapBytes>(__klap_native_malloc(chunk_units(size) * kUnit));
  KlapBytes opened = 0;
  if (memory != 0 && memory / kUnit < 1ull << 46 && memory % kUnit == 0) {
    begin_allocation(reinterpret_cast<KlapPiece*>(memory), 0);
    opened =
        memory / kUnit * kAddress + size * kSize + min(size + 1, KlapBytes{kLargestSize}) * kNextSize + 1;
  } else if (memory != 0) {
    __klap_native_free(reinterpret_cast<void*>(memory));
  }
  fence();  // the swap releases what was written
  KlapBytes word = load_relaxed(slot);
  while (true) {
    const KlapBytes after = opened != 0 ? opened + units : word & ~(kIsOpening | 3 * kNextSize);
    const KlapBytes before = swap_word(slot, word, after);
    if (before == word) break;
    word = before;
  }
  if (opened != 0 && chunk_of(word) != nullptr) close_chunk(word);
  return opened;
}

// Takes units from a slot. Returns its word before, which tells where they are; 0 if there is no room. Who
// may not open a chunk has nowhere else to go, so it sees the newest word and waits longer.
static __device__ __noinline__ KlapBytes take_units(KlapBytes* slot, KlapBytes units, bool may_open) {
  unsigned int pause = kShortestPause, pauses = 0;
  KlapBytes word = may_open ? load_relaxed(slot) : swap_word(slot, 0, 0);
  while (true) {
    const KlapBytes next = next_size_of(word);
    const bool fits = has_room(word, units), is_opening = (word & kIsOpening) != 0;
    const bool is_large = may_open && units > chunk_units(next) / 2;
    if (!fits && !is_large && is_opening) {
      if (pauses++ == (may_open ? kMostPauses : kMostLastPauses)) return 0;
      __nanosleep(pause);
      if (pause < kLongestPause) pause *= 2;
      word = load_relaxed(slot);
      continue;
    }
    if (!fits && (!may_open || is_opening || (is_large && next == kLargestSize))) return 0;
    const KlapBytes after = fits ? word + units : is_large ? word + kNextSize : word | kIsOpening;
    const KlapBytes before = swap_word(slot, word, after);
    if (before != word) {
      word = before;
      continue;
    }
    if (fits) return word;
    return is_large ? 0 : open_chunk(slot, next, units);
  }
}

static __device__ __forceinline__ void* begin_piece_of_chunk(KlapBytes word, KlapBytes slot, KlapBytes offset,
                                                             KlapBytes units) {
  const KlapBytes header = kIsOfChunk + offset * kOffset + units * kUnits + slot * kSlot;
  return begin_piece(chunk_of(word) + offset, reinterpret_cast<KlapPiece*>(header));
}

static __device__ __forceinline__ unsigned int own_slot() {
  unsigned int multiprocessor;
  asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  return multiprocessor % kSlots;
}

// As sum_below(), in a few steps where all lanes ask for memory or all for the same amount of it.
static __device__ __forceinline__ KlapBytes fast_sum_below(unsigned int group, unsigned int lane,
                                                           unsigned int leader, KlapBytes value) {
  const KlapBytes of_leader = __shfl_sync(group, value, leader);
  if (__all_sync(group, value == of_leader)) return value * __popc(group & ((1u << lane) - 1u));
  if (group != ~0u) return sum_below(group, lane, value);
  KlapBytes sum = value;
#pragma unroll
  for (unsigned int distance = 1; distance < 32; distance *= 2) {
    const KlapBytes of_other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += of_other;
  }
  return sum - value;
}

// A piece of the region that the leader takes for the group. `before`: bytes of the lanes below; `room`: of
// this one. Null for all lanes alike.
static __device__ __forceinline__ void* take_from_chunk(unsigned int group, bool is_leader,
                                                        unsigned int leader, KlapBytes before, KlapBytes room,
                                                        KlapBytes all) {
  KlapBytes word = 0;
  unsigned int slot = 0;
  if (is_leader && all / kUnit <= chunk_units(kLargestSize) / 2) {
    slot = own_slot();
    word = take_units(chunk_slots + slot, all / kUnit, true);
  }
  word = __shfl_sync(group, word, leader);
  slot = __shfl_sync(group, slot, leader);
  __syncwarp(group);  // what the leader has acquired is there for all lanes
  if (word == 0) return nullptr;
  return begin_piece_of_chunk(word, slot, taken_of(word) + before / kUnit, room / kUnit);
}

// For one lane that the device gives nothing: from any open chunk. Null if none has room.
static __device__ __noinline__ void* take_from_any_chunk(KlapBytes bytes) {
  const KlapBytes units = 1 + (bytes + kUnit - 1) / kUnit;
  if (units > chunk_units(kLargestSize)) return nullptr;
  const unsigned int own = own_slot();
#pragma unroll 1
  for (unsigned int i = 0; i < kSlots; ++i) {
    const unsigned int slot = (own + i) % kSlots;
    const KlapBytes word = take_units(chunk_slots + slot, units, false);
    if (word != 0) return begin_piece_of_chunk(word, slot, taken_of(word), units);
  }
  return nullptr;
}

// ---- freeing ----

static __device__ __forceinline__ bool is_of_chunk(KlapPiece* header) {
  return (reinterpret_cast<KlapBytes>(header) & kIsOfChunk) != 0;
}

static __device__ __forceinline__ void give_back_to_chunk(KlapPiece* piece, KlapPiece* words_of_header) {
  const KlapBytes header = reinterpret_cast<KlapBytes>(words_of_header);
  KlapPiece* const chunk = piece - (header / kOffset & kTaken);
  const KlapBytes freed = count_units(chunk, header / kUnits & kTaken);
  // Now the chunk may be gone, but its slot is not.
  if (freed == 0 || freed >> 63 != 0) return;  // closed
  KlapBytes* const slot = chunk_slots + header / kSlot;
  KlapBytes word = swap_word(slot, 0, 0);
  while (chunk_of(word) == chunk && taken_of(word) == freed + 1) {
    const KlapBytes before = swap_word(slot, word, without_chunk(word, size_of(word)));
    if (before == word) return close_chunk(word);
    word = before;  // the next chunk's size may have changed, or somebody is opening it
  }
}

#endif
