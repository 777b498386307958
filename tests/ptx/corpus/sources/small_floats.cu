// Eight-bit and narrower floating-point types.

// headers: cuda
// archs: 75 89 90 100f
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
__global__ void convert(const float* in, __nv_fp8_e4m3* a, __nv_fp8_e5m2* b, __nv_fp6_e2m3* c,
                        __nv_fp4_e2m1* d, float* out) {
  int t = threadIdx.x;
  a[t] = __nv_fp8_e4m3(in[t]);
  b[t] = __nv_fp8_e5m2(in[t + 1]);
  c[t] = __nv_fp6_e2m3(in[t + 2]);
  d[t] = __nv_fp4_e2m1(in[t + 3]);
  out[t] = float(a[t + 1]) + float(b[t + 1]) + float(c[t + 1]);
}
