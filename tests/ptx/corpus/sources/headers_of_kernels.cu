// What stands between a kernel's parameters and its body: bounds, registers, blocks.
__global__ void __launch_bounds__(256) one(int* p) { p[threadIdx.x] = 1; }
__global__ void __launch_bounds__(512, 2) two(int* p) { p[threadIdx.x] += p[threadIdx.x + 1]; }
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
__global__ void __maxnreg__(40) capped(float* p) { p[threadIdx.x] = sinf(p[threadIdx.x]); }
#endif
__global__ void none() {}
__global__ void many(char a, short b, int c, long long d, float e, double f, char3 g, float4 h, bool i,
                     void* j, const char* __restrict__ k) {
  *(double*)j = a + b + c + d + e + f + g.y + h.w + i + k[3];
}
extern "C" __global__ void unmangled(int* p) { *p = 3; }
