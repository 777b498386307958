// Atomic operations of every scope and type, fences, and operations across a warp.
__global__ void all(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  int t = threadIdx.x;
  int x = atomicAdd(i, t) + atomicSub(i + 1, t) + atomicExch(i + 2, t) + atomicMin(i + 3, t) +
          atomicMax(i + 4, t);
  x += atomicInc(u, 9) + atomicDec(u + 1, 9) + atomicCAS(i + 5, 1, t) + atomicAnd(i + 6, t) +
       atomicOr(i + 7, t);
  x += atomicXor(i + 8, t) + (int)atomicAdd(l, 3ull) + (int)atomicAdd(f, 1.5f) + (int)atomicAdd(d, 2.5);
  x += atomicAdd_block(i + 9, t) + atomicAdd_system(i + 10, t);
  __threadfence_block();
  __threadfence_system();
  i[t + 100] = x;
}

__global__ void shared_counts(const int* in, int* out) {
  __shared__ int bins[32];
  bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(bins + (in[threadIdx.x] & 31), 1);
  __syncthreads();
  out[threadIdx.x] = bins[threadIdx.x];
}

__global__ void warp(const int* in, int* out) {
  int v = in[threadIdx.x];
  v += __shfl_sync(~0u, v, 3) + __shfl_up_sync(~0u, v, 1) + __shfl_down_sync(~0u, v, 2) +
       __shfl_xor_sync(~0u, v, 16, 8);
  v += __any_sync(~0u, v) + __all_sync(~0u, v > 3) + __ballot_sync(~0u, v & 1) + __activemask();
  v += __match_any_sync(~0u, v);
  int all;
  v += __match_all_sync(~0u, v, &all) + all;
#if __CUDA_ARCH__ >= 800
  v += __reduce_add_sync(~0u, v) + __reduce_xor_sync(~0u, v) + __reduce_max_sync(~0u, v);
#endif
  out[threadIdx.x] = v;
}

__global__ void ordered(int* data) {
  int v, old;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(data) : "memory");
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(data + 1), "r"(v) : "memory");
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(old) : "l"(data + 2) : "memory");
  asm volatile("red.relaxed.cta.global.max.s32 [%0], %1;" ::"l"(data + 3), "r"(old) : "memory");
  asm volatile("fence.sc.gpu; fence.acq_rel.sys; membar.cta;" ::: "memory");
}
