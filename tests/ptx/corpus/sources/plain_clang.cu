// The PTX of clang: its own builtins and vector types.

// by: clang
typedef float float4 __attribute__((ext_vector_type(4)));
__constant__ float factors[3] = {1.5f, 2.5f, 3.5f};
__device__ int counters[4] = {1, 2};
__device__ int* first = counters;
__device__ __noinline__ int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
extern "C" __device__ int vprintf(const char*, void*);
struct Pair {
  char tag;
  double value;
};
extern "C" __global__ void mixed(float* out, const int* in, Pair pair, int n) {
  __shared__ float tile[64];
  int t = __nvvm_read_ptx_sreg_tid_x();
  tile[t] = in[t] * factors[n % 3];
  __nvvm_bar_sync(0);
  float local[8];
  for (int i = 0; i < 8; ++i) local[i] = tile[(t + i) % 64];
  switch (n) {
    case 0:
      out[0] = 1;
      break;
    case 1:
      out[1] = local[n & 7];
      break;
    case 2:
      out[2] = gcd(in[0], in[1]);
      break;
    case 3:
      out[3] = (float)pair.value;
      break;
    case 4:
      out[4] = *first;
      break;
    default:
      out[5] = pair.tag;
  }
  out[t] = local[t & 7] + __nvvm_shfl_sync_idx_i32(-1, t, 3, 31);
  vprintf("done %d\n", &n);
}
extern "C" __global__ void vectors(float4* a, const float4* b) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  a[t] = a[t] * b[t] + 1.0f;
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0; @p membar.gl; }" ::"r"(t) : "memory");
}
template <typename T>
__device__ __noinline__ T twice(T x) {
  return x + x;
}
template <typename T>
__global__ void generic(T* p) {
  p[0] = twice(p[1]);
}
template __global__ void generic<double>(double*);
template __global__ void generic<unsigned char>(unsigned char*);
