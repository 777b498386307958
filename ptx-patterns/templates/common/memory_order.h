// Accesses to memory with an order, as the PTX memory model has them.
#ifndef KLAP_MEMORY_ORDER_H
#define KLAP_MEMORY_ORDER_H

static __device__ __forceinline__ unsigned int load_relaxed(const unsigned int* address) {
  unsigned int value;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// Loads what a thread of the same block has stored. The first-level cache may serve it.
static __device__ __forceinline__ unsigned int load_in_block(const unsigned int* address) {
  unsigned int value;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

static __device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Behind a relaxed load or atomic that found a word changed, acquires all that was written before that change
// was released. A fence would do the same, and would also wait until this thread's own writes are done.
static __device__ __forceinline__ void acquire(const unsigned long long* word) {
  [[maybe_unused]] unsigned long long value;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
}

static __device__ __forceinline__ void acquire(const unsigned int* word) {
  [[maybe_unused]] unsigned int value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
}

static __device__ __forceinline__ void store_relaxed(unsigned int* address, unsigned int value) {
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

static __device__ __forceinline__ void store_relaxed(unsigned long long* address, unsigned long long value) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

static __device__ __forceinline__ void release() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

// Atomics say which memory they are on. If ptxas 13.0 has to find that out at run time, it was seen to drop
// the result of a 64-bit addition that was only compared. `state` is the order, the scope and the space.
#define KLAP_ATOMIC(name, state, space, operation, type, letter, Word)            \
  static __device__ __forceinline__ Word name(Word* word, Word value) {           \
    Word before;                                                                  \
    asm volatile("atom." state "." #space "." operation "." type " %0, [%1], %2;" \
                 : "=" letter(before)                                             \
                 : "l"(__cvta_generic_to_##space(word)), letter(value)            \
                 : "memory");                                                     \
    return before;                                                                \
  }
#define KLAP_COMPARE_AND_SWAP(name, state, space, type, letter, Word)                    \
  static __device__ __forceinline__ Word name(Word* word, Word expected, Word value) {   \
    Word before;                                                                         \
    asm volatile("atom." state "." #space ".cas." type " %0, [%1], %2, %3;"              \
                 : "=" letter(before)                                                    \
                 : "l"(__cvta_generic_to_##space(word)), letter(expected), letter(value) \
                 : "memory");                                                            \
    return before;                                                                       \
  }

// These are for all threads of the device, and have no order.
KLAP_ATOMIC(add_global, "relaxed.gpu", global, "add", "u32", "r", unsigned int)
KLAP_ATOMIC(add_global, "relaxed.gpu", global, "add", "u64", "l", unsigned long long)
KLAP_ATOMIC(exchange_global, "relaxed.gpu", global, "exch", "b32", "r", unsigned int)
KLAP_ATOMIC(exchange_global, "relaxed.gpu", global, "exch", "b64", "l", unsigned long long)
KLAP_COMPARE_AND_SWAP(compare_and_swap_global, "relaxed.gpu", global, "b32", "r", unsigned int)
KLAP_COMPARE_AND_SWAP(compare_and_swap_global, "relaxed.gpu", global, "b64", "l", unsigned long long)
// These are for the threads of a block. One that exchanges a word sees the writes of the one before.
KLAP_ATOMIC(add_in_block, "relaxed.cta", shared, "add", "u32", "r", unsigned int)
KLAP_COMPARE_AND_SWAP(compare_and_swap_in_block, "relaxed.cta", shared, "b32", "r", unsigned int)
KLAP_ATOMIC(exchange_in_block, "acq_rel.cta", shared, "exch", "b32", "r", unsigned int)
KLAP_ATOMIC(exchange_in_block, "acq_rel.cta", shared, "exch", "b64", "l", unsigned long long)
#undef KLAP_ATOMIC
#undef KLAP_COMPARE_AND_SWAP

#endif
