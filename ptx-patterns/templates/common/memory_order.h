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
