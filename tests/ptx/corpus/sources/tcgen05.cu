// Blackwell's fifth-generation tensor cores: tensor memory, its loads, and matrix multiply with descriptors.

// archs: 100a 100f
__global__ void multiply(unsigned long long desc_a, unsigned long long desc_b, unsigned instruction,
                         int* out) {
  __shared__ unsigned base;
  __shared__ __align__(8) unsigned long long bar;
  unsigned s = (unsigned)__cvta_generic_to_shared(&base), b = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(s) : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  __syncthreads();
  unsigned t = base;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(t),
      "l"(desc_a), "l"(desc_b), "r"(instruction), "r"(instruction & 1)
      : "memory");
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(b)
               : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  int r0, r1;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(t));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.st.sync.aligned.16x64b.x1.b32 [%0], {%1};" ::"r"(t), "r"(r0) : "memory");
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(t));
  out[threadIdx.x] = r0 + r1;
}
