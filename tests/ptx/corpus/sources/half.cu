// Half precision and bfloat16: scalar and packed, with conversions.

// headers: cuda
// archs: 80 90 100 120
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void halves(const __half* a, const __half2* b, __half2* out, float* f) {
  int t = threadIdx.x;
  __half2 x = b[t], y = __half2half2(a[t]);
  out[t] = __hfma2(x, y, __hadd2(x, __float2half2_rn(1.5f)));
  out[t + 1] = __hmul2(h2sqrt(x), h2exp(y));
  f[t] = __half2float(a[t]) + __low2float(x) + (__hgt(a[t], a[t + 1]) ? 1.f : 0.f) + __half2float(hsin(a[t]));
  atomicAdd(out + 7, x);
}
__global__ void brains(const __nv_bfloat16* a, const __nv_bfloat162* b, __nv_bfloat162* out, float* f) {
  int t = threadIdx.x;
  __nv_bfloat162 x = b[t];
  out[t] = __hfma2(x, x, __float2bfloat162_rn(2.5f));
  f[t] = __bfloat162float(a[t]) + __bfloat162float(__hmax(a[t], a[t + 1]));
}
