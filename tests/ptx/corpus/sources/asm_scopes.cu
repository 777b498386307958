// Hand-written assembly: scopes that shadow one another, labels that repeat, predicate pairs, declarations
// in scopes, calls, and formatting of every kind.

// by: nvrtc nvcc clang
__device__ __noinline__ int helper(int x) { return x * 3 + 1; }
__global__ void shadows(int* out, int n) {
  int a, b;
  asm volatile(
      "{\n\t.reg .b32 x<4>; .reg .pred p<3>, q;\n"
      "\tmov.u32 x1, %1;\n"
      "\t{ .reg .b64 x<2>; .reg .b32 n;\n"
      "\t  cvt.u64.u32 x1, %1; cvt.u32.u64 n, x1; add.u32 %0, n, 1; }\n"
      "\tadd.u32 x2, x1, %0;\n"
      "\tsetp.lt.and.u32 p1|p2, x2, 77, !q;\n"
      "@p1 mov.u32 %0, x2;\n"
      "@!p2   mov.u32   %0,x1 ;\n}"
      : "=r"(a)
      : "r"(n));
  asm volatile(
      "{ .reg .u32 i; mov.u32 i, 0; mov.u32 %0, 0;\nloop: add.u32 %0, %0, i;\nadd.u32 i, i, 1;\n"
      "{ .reg .pred loop2; setp.lt.u32 loop2, i, %1; @loop2 bra.uni loop; } }"
      : "=r"(b)
      : "r"(n));
  asm volatile(
      "{ .reg .u32 i; mov.u32 i, 5;\nloop: sub.u32 i, i, 1; { .reg .pred i2; setp.ne.u32 i2, i, %0; @i2 bra "
      "loop; } }" ::"r"(n));
  asm volatile(
      "{ .local .align 8 .b8 buffer[16]; .shared .u32 tile; .reg .u64 p; mov.u64 p, buffer; st.local.u32 "
      "[buffer+4], %0;"
      " st.shared.u32 [tile], %0; cvta.local.u64 p, p; st.u32 [p+8], %0; }" ::"r"(a)
      : "memory");
  asm volatile("{.reg .v2 .u32 pair;mov.u32 pair.x,%1;mov.u32 pair.y,pair.x;add.u32 %0,pair.x,pair.y;}"
               : "=r"(a)
               : "r"(b));
  out[0] = a + b + helper(n);
}
__global__ void joined(int* out, int n) {
  int lanes;
  asm volatile(
      "{ .reg .pred p; .reg .b32 t; shfl.sync.down.b32 t|p, %1, 1, 0x1f, -1; @p add.s32 t, t, %1; "
      "vote.sync.ballot.b32 %0, p, 0xffffffff;"
      " match.all.sync.b32 t|p, %1, ~0x0; activemask.b32 t; }"
      : "=r"(lanes)
      : "r"(n));
  long long sum;
  asm volatile("add.cc.u32 %0, %0, 1 ; addc.u32 %0, %0, (3+4)*2 ;" : "+r"(lanes));
  asm volatile(
      "{ .reg .b32 lo, hi; mov.b64 {lo,hi}, %1; prmt.b32.f4e lo, lo, hi, 3; lop3.b32 hi, lo, hi, -1, 0xE8; "
      "mov.b64 %0, {hi , lo}; }"
      : "=l"(sum)
      : "l"((long long)n * n));
  asm volatile(".pragma \"nounroll\";");
  asm volatile(
      "{ .reg .pred px; setp.eq.u32 px, %1, 0; bar.sync 0; barrier.sync.aligned 1, 64; bar.red.popc.u32 %0, "
      "2, 64, px; }"
      : "=r"(lanes)
      : "r"(n));
  out[1] = lanes + (int)sum;
}
