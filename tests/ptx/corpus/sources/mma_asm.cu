// Tensor cores by inline assembly: mma of several shapes and types, and matrix loads.
__global__ void turing(const unsigned* a, float* d, unsigned short* smem_in) {
  __shared__ __align__(16) unsigned short tile[512];
  tile[threadIdx.x] = smem_in[threadIdx.x];
  __syncthreads();
  unsigned address = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x * 8);
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[3]) : "r"(address));
  float c[4] = {0, 1, 2, 3};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(r[0]), "r"(r[1]), "r"(a[threadIdx.x]));
  int i[2] = {0, 0};
  asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+r"(i[0]), "+r"(i[1])
               : "r"(r[2]), "r"(r[3]));
  d[threadIdx.x] = c[0] + c[1] + c[2] + c[3] + i[0] + i[1];
}
#if __CUDA_ARCH__ >= 800
__global__ void ampere(const unsigned* a, float* d, double* e) {
  unsigned r0 = a[0], r1 = a[1], r2 = a[2], r3 = a[3], meta = a[4];
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r1));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r1));
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(meta));
#endif
  double f0 = e[0], f1 = e[1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(f0), "+d"(f1)
               : "d"(e[2]), "d"(e[3]));
  d[threadIdx.x] = c0 + c1 + c2 + c3 + (float)f0 + (float)f1;
}
#endif
