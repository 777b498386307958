// Vector loads and stores, cached and streaming, and vector operands with ignored components.
__global__ void copies(const float4* a, float4* b, const int2* c, int2* d, const uchar4* e, uchar4* f,
                       const double2* g, double2* h, short4* s) {
  int i = threadIdx.x;
  float4 v = a[i];
  v.x += v.w;
  b[i] = v;
  int2 w = __ldg(c + i);
  d[i] = make_int2(w.y, w.x);
  uchar4 u = e[i];
  f[i] = make_uchar4(u.w, u.z, u.y, u.x);
  double2 q = __ldcs(g + i);
  __stcg(h + i, make_double2(q.x * 2, q.y));
  s[i].x = s[i].w;
}

__global__ void ignored(const int4* a, int* out) {
  int x, y;
  asm volatile("ld.global.v4.u32 {%0, _, _, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(a + threadIdx.x));
  unsigned lo;
  asm volatile("{ mov.b64 {%0, _}, %1; }" : "=r"(lo) : "l"((long long)x << 20 | y));
  asm volatile("st.global.v2.u32 [%0+8], {%1, %2};" ::"l"(out), "r"(x + y), "r"(lo) : "memory");
}
