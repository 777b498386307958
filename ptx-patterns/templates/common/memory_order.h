// Accesses to memory with an order, as the PTX memory model has them.
#ifndef KLAP_MEMORY_ORDER_H
#define KLAP_MEMORY_ORDER_H

static __device__ __forceinline__ unsigned int load_relaxed(const unsigned int* address) {
  unsigned int value;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
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

static __device__ __forceinline__ void store_relaxed(unsigned long long* address, unsigned long long value) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

static __device__ __forceinline__ void release() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

// Atomics on global memory, for all threads of the device and without an order. Each says which memory it is.
// Where ptxas 13.0 has to find that out at run time, it was seen to drop the result of a 64-bit addition that
// was only compared.
static __device__ __forceinline__ unsigned int add_global(unsigned int* word, unsigned int value) {
  unsigned int before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(word)), "r"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned long long add_global(unsigned long long* word,
                                                                unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(word)), "l"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned int exchange_global(unsigned int* word, unsigned int value) {
  unsigned int before;
  asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(word)), "r"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned long long exchange_global(unsigned long long* word,
                                                                     unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(word)), "l"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned long long compare_and_swap_global(unsigned long long* word,
                                                                             unsigned long long expected,
                                                                             unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(word)), "l"(expected), "l"(value)
               : "memory");
  return before;
}

// These atomics are those on the shared memory of the block.
static __device__ __forceinline__ unsigned int add_in_block(unsigned int* word, unsigned int value) {
  unsigned int before;
  asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_shared(word)), "r"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned int compare_and_swap_in_block(unsigned int* word,
                                                                         unsigned int expected,
                                                                         unsigned int value) {
  unsigned int before;
  asm volatile("atom.relaxed.cta.shared.cas.b32 %0, [%1], %2, %3;"
               : "=r"(before)
               : "l"(__cvta_generic_to_shared(word)), "r"(expected), "r"(value)
               : "memory");
  return before;
}

// Exchanges a word of the block's shared memory. One thread of the block sees the writes of the other.
static __device__ __forceinline__ unsigned int exchange_in_block(unsigned int* word, unsigned int value) {
  unsigned int before;
  asm volatile("atom.acq_rel.cta.shared.exch.b32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_shared(word)), "r"(value)
               : "memory");
  return before;
}
static __device__ __forceinline__ unsigned long long exchange_in_block(unsigned long long* word,
                                                                       unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.acq_rel.cta.shared.exch.b64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_shared(word)), "l"(value)
               : "memory");
  return before;
}

#endif
