// Video instructions: byte and half-word selectors on operands, saturation, secondary operations; and SIMD
// intrinsics.
__global__ void scalar(const int* a, int* out) {
  int x = a[0], y = a[1], z = a[2], r;
  asm volatile("vadd.s32.s32.s32.sat %0, %1.b0, %2.h1;" : "=r"(r) : "r"(x), "r"(y));
  out[0] = r;
  asm volatile("vadd.s32.u32.s32.add %0, %1.b3, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  out[1] = r;
  asm volatile("{ .reg .b32 q; mov.b32 q, %3; vsub.u32.u32.u32 q.b2, %1.h0, %2, q; mov.b32 %0, q; }"
               : "=r"(r)
               : "r"(x), "r"(y), "r"(z));
  out[2] = r;
  asm volatile("vmad.s32.s32.u32.shr15 %0, %1.h0, %2.b1, -%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  out[3] = r;
  asm volatile("vset.s32.u32.lt %0, %1.b1, %2;" : "=r"(r) : "r"(x), "r"(y));
  out[4] = r;
  asm volatile("vadd4.s32.s32.s32.add %0.b210, %1.b7654, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  out[5] = r;
  asm volatile("vabsdiff2.u32.s32.s32.sat %0, %1.h32, %2.h10, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  out[6] = r;
}
__global__ void packed(const unsigned* a, unsigned* out) {
  unsigned x = a[threadIdx.x], y = a[threadIdx.x + 1];
  out[threadIdx.x] = __vadd4(x, y) ^ __vabsdiffu4(x, y) ^ __vcmpgtu4(x, y) ^ __vsads2(x, y) ^ __vavgu4(x, y);
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out[0]) : "r"(x), "r"(y), "r"(5));
  asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(out[1]) : "r"(x), "r"(y), "r"(3));
}
