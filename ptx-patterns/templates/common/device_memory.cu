// malloc and free of a module whose device memory is aggregated.
//
// The lanes of a warp that ask for memory together share one allocation. The lowest of them makes it, and
// each gets a piece:
//
//   | KlapPiece | memory of a lane | KlapPiece | memory of the next lane | ...
//
// The header in front of a piece leads to the first piece's, which counts the pieces in use. So a piece may
// be freed by itself, by any thread, in this kernel or in another one. The thread that frees the last piece
// frees the allocation. Memory that is not shared has the same header: every function of the module that
// takes or frees memory is one of these.
//
// No lane is refused because of its group's request: if the group's allocation fails, each lane asks by
// itself. So do lanes that ask for nothing or for more than any device has. The program gets the answer of
// the device's own functions then, whatever that is.
//
// A program may hand a pointer on in a way that orders only the pointer (a relaxed atomic, a shuffle). It
// need not have written to the memory, but the header was written. So there is a fence behind the header's
// write and one before its read. It is read by atomics, which never see an older value than the one that is
// there.
//
// The functions named __klap_native_* are the device's own. The module's calls become calls of the others.
// With KLAP_CHUNKS groups and single lanes that ask for little get pieces of chunks (memory_chunks.h). Their
// headers tell where in a chunk they are. All else is as described above, and for what a chunk has no room.
//
// Constants: KLAP_RUNTIME where the module calls cudaMalloc or cudaFree. KLAP_CHUNKS.
struct alignas(16) KlapPiece {
  KlapPiece* allocation;      // its first piece
  unsigned long long in_use;  // of a first piece: how many pieces are not freed yet, and where they are from
};
static_assert(sizeof(KlapPiece) == 16, "pieces are aligned as the heap's own memory is");

typedef unsigned long long KlapBytes;

extern "C" __device__ void* __klap_native_malloc(KlapBytes bytes);
extern "C" __device__ void __klap_native_free(void* memory);
extern "C" __device__ unsigned int __klap_native_runtime_malloc(void** memory, KlapBytes bytes);
extern "C" __device__ unsigned int __klap_native_runtime_free(void* memory);

enum : KlapBytes {
  // No sum over 32 lanes overflows with this limit, and no device has that much for one of them.
  kLargestShared = 1ull << 40,
  // Larger requests ask for this instead. Near the largest number, where a header no longer fits, the
  // device's own malloc answers with an address.
  kNobodyHas = 1ull << 62,
  // In the count: cudaMalloc gave the allocation, and cudaFree takes it back.
  kFromRuntime = 1ull << 32,
};

static __device__ __forceinline__ unsigned int lane_number() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

static __device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

static __device__ __forceinline__ KlapBytes add(KlapBytes* word, KlapBytes value) {
  KlapBytes before;
  asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
  return before;
}

// Reads a header that no thread needs any more.
static __device__ __forceinline__ KlapPiece* take_out(KlapPiece** word) {
  KlapPiece* before;
  asm volatile("atom.relaxed.gpu.exch.b64 %0, [%1], 0;" : "=l"(before) : "l"(word) : "memory");
  return before;
}

// Sum of `value` over the lanes of the group below this one.
static __device__ __forceinline__ KlapBytes sum_below(unsigned int group, unsigned int lane,
                                                      KlapBytes value) {
  KlapBytes sum = 0;
#pragma unroll 1
  for (unsigned int rest = group; rest != 0; rest &= rest - 1) {
    const unsigned int other = __ffs(rest) - 1;
    const KlapBytes of_other = __shfl_sync(group, value, other);
    if (other < lane) sum += of_other;
  }
  return sum;
}

// ---- taking ----

static __device__ __forceinline__ void begin_allocation(KlapPiece* first, KlapBytes in_use) {
  *static_cast<volatile KlapBytes*>(&first->in_use) = in_use;
}

// The memory behind the header, which is written now.
static __device__ __forceinline__ void* begin_piece(KlapPiece* piece, KlapPiece* allocation) {
  *static_cast<KlapPiece* volatile*>(&piece->allocation) = allocation;
  fence();
  return piece + 1;
}

static __device__ __forceinline__ void* alone(void* allocation, KlapBytes from) {
  KlapPiece* const piece = static_cast<KlapPiece*>(allocation);
  begin_allocation(piece, from + 1);
  return begin_piece(piece, piece);
}

#ifdef KLAP_CHUNKS
#include "common/memory_chunks.h"
#endif

// A piece of the allocation that the active lanes share. Null if this lane shares nothing or there is no room
// for all.
static __device__ __noinline__ void* take_together(KlapBytes bytes) {
#ifdef KLAP_LANES_APART
  const unsigned int active = 1u << lane_number();
#else
  const unsigned int active = __activemask();
#endif
  __syncwarp(active);
  const bool shares = bytes != 0 && bytes <= kLargestShared;
  const unsigned int group = __ballot_sync(active, shares);
#ifdef KLAP_CHUNKS
  if (!shares) return nullptr;
#else
  if (!shares || (group & (group - 1)) == 0) return nullptr;
#endif
  const unsigned int lane = lane_number(), leader = __ffs(group) - 1;
  const KlapBytes room = sizeof(KlapPiece) + (bytes + 15) / 16 * 16;
#ifdef KLAP_CHUNKS
  const KlapBytes before = fast_sum_below(group, lane, leader, room);
#else
  const KlapBytes before = sum_below(group, lane, room);
#endif
  const KlapBytes all = __shfl_sync(group, before + room, 31u - __clz(group));
#ifdef KLAP_CHUNKS
  if (void* const piece = take_from_chunk(group, lane == leader, leader, before, room, all)) return piece;
  if ((group & (group - 1)) == 0) return nullptr;
#endif
  KlapBytes first = 0;
  if (lane == leader) {
    first = reinterpret_cast<KlapBytes>(__klap_native_malloc(all));
    if (first != 0) begin_allocation(reinterpret_cast<KlapPiece*>(first), __popc(group));
  }
  first = __shfl_sync(group, first, leader);
  // The count is the leader's to write; behind this it is written for every lane of the group.
  __syncwarp(group);
  if (first == 0) return nullptr;
  return begin_piece(reinterpret_cast<KlapPiece*>(first + before), reinterpret_cast<KlapPiece*>(first));
}

#ifdef KLAP_CHUNKS
// Null if there is no memory anywhere.
static __device__ __forceinline__ void* take_alone(KlapBytes bytes) {
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    void* const allocation = __klap_native_malloc(bytes + sizeof(KlapPiece));
    if (allocation != nullptr) return alone(allocation, 0);
    if (void* const piece = take_from_any_chunk(bytes)) return piece;
  }
  return nullptr;
}
#endif

extern "C" __device__ void* __klap_malloc(KlapBytes bytes) {
  if (void* const piece = take_together(bytes)) return piece;
  if (bytes > kLargestShared) return nullptr;
  if (bytes == 0) {  // null or not is for the device to say
    void* const nothing = __klap_native_malloc(0);
    if (nothing == nullptr) return nullptr;
    __klap_native_free(nothing);
  }
#ifdef KLAP_CHUNKS
  return take_alone(bytes);
#else
  void* const allocation = __klap_native_malloc(bytes + sizeof(KlapPiece));
  return allocation == nullptr ? nullptr : alone(allocation, 0);
#endif
}

#ifdef KLAP_RUNTIME
extern "C" __device__ unsigned int __klap_runtime_malloc(void** memory, KlapBytes bytes) {
  if (memory == nullptr) return __klap_native_runtime_malloc(memory, bytes);
  if (bytes > kLargestShared) return __klap_native_runtime_malloc(memory, kNobodyHas);
  if (void* const piece = take_together(bytes)) {
    *memory = piece;
    return 0;
  }
  if (bytes == 0) {
    const unsigned int error = __klap_native_runtime_malloc(memory, 0);
    if (error != 0 || *memory == nullptr) return error;
    __klap_native_runtime_free(*memory);
  }
#ifdef KLAP_CHUNKS
  if (void* const piece = take_alone(bytes)) {
    *memory = piece;
    return 0;
  }
#endif
  const unsigned int error = __klap_native_runtime_malloc(memory, bytes + sizeof(KlapPiece));
  if (error == 0 && *memory != nullptr) *memory = alone(*memory, kFromRuntime);
  return error;
}
#endif

// ---- freeing ----

// Counts a piece out, and frees the allocation with the last one. By then all accesses to the other pieces
// have been done. Returns the result that cudaFree would have returned.
static __device__ __forceinline__ unsigned int give_back(void* memory) {
  fence();
  KlapPiece* const piece = static_cast<KlapPiece*>(memory) - 1;
  KlapPiece* const allocation = take_out(&piece->allocation);
#ifdef KLAP_CHUNKS
  if (is_of_chunk(allocation)) {
    give_back_to_chunk(piece, allocation);
    return 0;
  }
#endif
  const KlapBytes in_use = add(&allocation->in_use, ~0ull);
#ifdef KLAP_RUNTIME
  if (in_use == kFromRuntime + 1) return __klap_native_runtime_free(allocation);
#endif
  if (in_use == 1) __klap_native_free(allocation);
  return 0;
}

extern "C" __device__ void __klap_free(void* memory) {
  if (memory != nullptr) give_back(memory);
}

#ifdef KLAP_RUNTIME
extern "C" __device__ unsigned int __klap_runtime_free(void* memory) {
  return memory == nullptr ? __klap_native_runtime_free(memory) : give_back(memory);
}
#endif
