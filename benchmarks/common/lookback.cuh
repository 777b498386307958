// How blocks that each handle one tile learn about the tiles before theirs, in a single kernel without
// dynamic parallelism: decoupled look-back (Merrill and Garland).
//
// Blocks draw their tile's number from a counter when they start, so the tiles a block waits for belong to
// blocks that run or have run, and waiting can not deadlock whatever order the hardware starts blocks in.
// Every tile has one 64-bit word that holds a value and says what it is: the tile's own aggregate, published
// as soon as it is known, or the prefix that includes it. Value and state travel in one word, so they are
// always consistent. A warp looks back over 32 tiles at a time until it meets a prefix.
//
// Where the tiles are moved in place, the words also order memory accesses: they are released after the tile
// was read and acquired before another tile is written over it.
#pragma once

#include <cuda_runtime.h>

#include "cuda_check.h"
#include "tile.cuh"

namespace bench {

// What the blocks of one kernel share. Zeroed before the kernel.
struct TileWords {
  unsigned long long* tile;  // one for each tile
  unsigned long long* next;  // the counter that numbers the tiles
};

class TileWordsMemory {
 public:
  explicit TileWordsMemory(int tiles) : words_(static_cast<size_t>(tiles) + 1) {}
  // Enqueues the zeroing; part of a run like the library's initialising kernel.
  [[nodiscard]] TileWords cleared() {
    check(cudaMemsetAsync(words_.data(), 0, words_.bytes()), "clearing the tiles' words");
    return {words_.data() + 1, words_.data()};
  }

 private:
  DeviceArray<unsigned long long> words_;
};

template <bool kOrdersMemory>
__device__ __forceinline__ unsigned long long load_word(unsigned long long* word) {
  if constexpr (kOrdersMemory) {
    return __nv_atomic_load_n(word, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  } else {
    return __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }
}

template <bool kOrdersMemory>
__device__ __forceinline__ void store_word(unsigned long long* word, unsigned long long value) {
  if constexpr (kOrdersMemory) {
    __nv_atomic_store_n(word, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  } else {
    __nv_atomic_store_n(word, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }
}

// The block's number in the order in which blocks started. Contains a barrier; once per kernel.
__device__ __forceinline__ int draw_number(const TileWords& words) {
  __shared__ int number;
  if (threadIdx.x == 0) number = static_cast<int>(atomicAdd(words.next, 1ULL));
  __syncthreads();
  return number;
}

// The upper half of a word; 0 while nothing is known.
enum TileState : unsigned { kUnknown = 0, kAggregate = 1, kPrefix = 2 };

__device__ __forceinline__ unsigned to_bits(int value) { return static_cast<unsigned>(value); }
__device__ __forceinline__ unsigned to_bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ void from_bits(unsigned bits, int& value) { value = static_cast<int>(bits); }
__device__ __forceinline__ void from_bits(unsigned bits, float& value) { value = __uint_as_float(bits); }

template <class Value>
__device__ __forceinline__ unsigned long long packed(TileState state, Value value) {
  return static_cast<unsigned long long>(state) << 32 | to_bits(value);
}

// All aggregates of the tiles before `tile` combined. Called by a whole warp with tile > 0.
template <class Operation, bool kOrdersMemory>
__device__ typename Operation::Value look_back(const TileWords& words, int tile) {
  auto result = Operation::kIdentity;
  for (int nearest = tile - 1;; nearest -= 32) {
    const int observed = nearest - lane_index();
    unsigned long long word = packed(kPrefix, Operation::kIdentity);  // of tiles that do not exist
    unsigned state = kPrefix;
    do {
      if (observed >= 0) word = load_word<kOrdersMemory>(words.tile + observed);
      state = static_cast<unsigned>(word >> 32);
    } while (__any_sync(kAllLanes, state == kUnknown));
    const unsigned prefixes = __ballot_sync(kAllLanes, state == kPrefix);
    const int last = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) - 1 : 31;
    auto value = Operation::kIdentity;
    if (lane_index() <= last) from_bits(static_cast<unsigned>(word), value);
    result = Operation::combine(result, reduce_warp<Operation>(value));
    if (prefixes != 0) return result;
  }
}

// Publishes the tile's aggregate and returns that of all tiles before it, to every thread. The aggregate must
// have come through a barrier of the block. Contains a barrier itself; once per kernel.
//
// With kOrdersMemory, whatever the block did before the barrier that made the aggregate happens before what
// any later tile's block does after this function: the barriers inside the blocks and the release and acquire
// of the words between them are links of one chain, also where a word summarises the tiles before it.
template <class Operation, bool kOrdersMemory>
__device__ __forceinline__ typename Operation::Value prefix_of_tile(const TileWords& words, int tile,
                                                                    typename Operation::Value aggregate) {
  __shared__ typename Operation::Value prefix;
  if (warp_index() == 0) {
    auto before = Operation::kIdentity;
    if (tile > 0) {
      if (lane_index() == 0) store_word<kOrdersMemory>(words.tile + tile, packed(kAggregate, aggregate));
      before = look_back<Operation, kOrdersMemory>(words, tile);
      __syncwarp();  // what the other lanes acquired comes before the next release
    }
    if (lane_index() == 0) {
      const auto including = Operation::combine(before, aggregate);
      store_word<kOrdersMemory>(words.tile + tile, packed(kPrefix, including));
      prefix = before;
    }
  }
  __syncthreads();
  return prefix;
}

}  // namespace bench
