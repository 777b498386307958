// Integer and floating-point arithmetic, conversions and the mathematical functions that bring tables along.

// options: --device-int128
__global__ void integers(const int* a, const unsigned* b, long long* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = a[i];
  unsigned y = b[i] | 1;
  out[i] = (long long)x * y + x / 7 - x % (int)y + __mulhi(x, 12345) + __popc(y) + __clz(x) + __ffs(x) +
           __brev(y) + __byte_perm(x, y, 0x3210) + __funnelshift_l(x, y, 5) + __sad(x, 3, y) + (x >> 3) +
           (y << (x & 31)) + min(x, 9) + max(y, 5u) + abs(x);
}

__global__ void wide(const unsigned long long* a, unsigned long long* out) {
  unsigned long long x = a[threadIdx.x], y = a[threadIdx.x + 1];
  unsigned __int128 product = (unsigned __int128)x * y;
  out[threadIdx.x] =
      (unsigned long long)(product >> 64) ^ (unsigned long long)product ^ (x / (y | 1)) ^ __umul64hi(x, y);
}

__global__ void floats(const float* a, float* out) {
  float x = a[threadIdx.x];
  out[threadIdx.x] = sinf(x) + cosf(x * 3) + expf(x) * logf(x) + powf(x, 1.5f) + rsqrtf(x) + fmodf(x, 2.5f) +
                     __fdividef(x, 3.f) + __saturatef(x) + floorf(x) + truncf(x) + erff(x) +
                     (x == x ? 1.f : 1e-30f) + __int_as_float(0x7f800000) + __frcp_rn(x) + tgammaf(x);
}

__global__ void doubles(const double* a, double* out) {
  double x = a[threadIdx.x];
  out[threadIdx.x] = sin(x) + exp(x) / (1.0 + x) + sqrt(x) + lgamma(x) + (double)(float)x +
                     (double)(long long)x + fma(x, 2.5, -1e-300) + __hiloint2double(__double2hiint(x), 7);
}

__global__ void conversions(const float* a, int* out) {
  float x = a[threadIdx.x];
  signed char c = (signed char)x;
  unsigned short s = (unsigned short)x;
  out[threadIdx.x] = c + s + __float2int_rd(x) + (int)__float2uint_rz(x) + (int)(unsigned long long)x +
                     (int)__float2ll_ru(x) + (x > 3.f) + (bool)c;
}
