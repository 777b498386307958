// Children that copy to shared memory asynchronously: whole pieces, pieces whose end is zero, and how much is
// copied known only to the thread; under a predicate, and in a called function.
#include "case.h"

constexpr unsigned kThreads = 40, kBlock = 64, kWords = 4;

KLAP_SHARED static inline unsigned bytes_of(unsigned t, unsigned i) { return (t + i) % 17; }
// A word of which the first bytes, counted from `first`, are there, and the others zero.
KLAP_SHARED static inline unsigned first_bytes(unsigned word, unsigned bytes, unsigned first) {
  if (bytes <= first) return 0;
  return bytes - first >= 4 ? word : word & ((1u << 8 * (bytes - first)) - 1);
}

#ifdef __CUDACC__

__device__ static inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ static inline void copy_whole(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ __noinline__ void copy_some(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
__device__ static inline void copy_word_if(void* to, const void* from, unsigned bytes, unsigned wanted) {
  asm volatile(
      "{ .reg .pred wanted;\n setp.ne.u32 wanted, %3, 0;\n"
      "@wanted cp.async.ca.shared.global [%0], [%1+4], 4, %2;\n}" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(wanted)
      : "memory");
}
__device__ static inline void copy_five(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1+8], 8, 5;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}

__global__ void stage(unsigned* out, const uint4* table, unsigned t) {
  __shared__ uint4 whole[kBlock], some[kBlock];
  __shared__ uint2 five[kBlock];
  __shared__ unsigned word[kBlock];
  const unsigned i = threadIdx.x;
  word[i] = 1000;
  copy_whole(whole + i, table + t + i);
  asm volatile("cp.async.commit_group;" ::: "memory");
  copy_some(some + i, table + t + i, bytes_of(t, i));
  copy_word_if(word + i, table + t + i, i % 5, i % 3);
  copy_five(five + i, table + t + i);
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  const unsigned other = (i + 7) % kBlock;
  unsigned sum = whole[other].x + 3 * whole[other].w;
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  sum += 5 * some[other].x + 7 * some[other].y + 11 * some[other].z + 13 * some[other].w;
  sum += 17 * word[other] + 19 * five[other].x + 23 * five[other].y;
  out[t * kBlock + i] = sum;
}

extern "C" __global__ void staging_parent(unsigned* out, const uint4* table) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kThreads) stage<<<1, kBlock>>>(out, table, t);
}

#else

KLAP_CASE(asynchronous_copies, "children copy to shared memory asynchronously") {
  std::vector<unsigned> table, after;
  for (unsigned i = 0; i < kWords * (kThreads + kBlock); ++i) table.push_back(0x9e3779b9u * (i + 1));
  for (unsigned t = 0; t < kThreads; ++t) {
    for (unsigned i = 0; i < kBlock; ++i) {
      const unsigned other = (i + 7) % kBlock, bytes = bytes_of(t, other);
      const unsigned* const of = table.data() + kWords * (t + other);
      unsigned sum = of[0] + 3 * of[3];
      for (unsigned w = 0; w < kWords; ++w)
        sum += (5 + 2 * w + (w > 1 ? 2 : 0)) * first_bytes(of[w], bytes, 4 * w);
      sum += 17 * (other % 3 == 0 ? 1000 : first_bytes(of[1], other % 5, 0));
      sum += 19 * of[2] + 23 * first_bytes(of[3], 1, 0);
      after.push_back(sum);
    }
  }
  const auto out = c.buffer("out", std::vector<unsigned>(after.size()), after), of = c.input("table", table);
  c.launch("staging_parent", {2, 1, 1}, {32, 1, 1}, c.address(out), c.address(of));
  c.rewritten("staging_parent");
  c.children_never_meet();
}

#endif
