// An ordinary tiled program with high register use.

// by: nvrtc nvcc clang
template <int TILE>
__device__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][TILE * 4 + 1], tb[16][TILE * 4 + 1];
  float acc[TILE][TILE] = {};
  int tx = threadIdx.x, ty = threadIdx.y;
  for (int k = 0; k < n; k += 16) {
    for (int i = 0; i < TILE; ++i) {
      ta[tx][ty * TILE + i] = a[(ty * TILE + i) * n + k + tx];
      tb[ty][tx * TILE + i] = b[(k + ty) * n + tx * TILE + i];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int x = 0; x < TILE; ++x)
#pragma unroll
        for (int y = 0; y < TILE; ++y) acc[x][y] = fmaf(ta[j][ty + x], tb[j][tx + y], acc[x][y]);
    __syncthreads();
  }
  for (int x = 0; x < TILE; ++x)
    for (int y = 0; y < TILE; ++y) c[(ty * TILE + x) * n + tx * TILE + y] = acc[x][y];
}
__global__ void small(const float* a, const float* b, float* c, int n) { multiply<2>(a, b, c, n); }
__global__ void large(const float* a, const float* b, float* c, int n) { multiply<4>(a, b, c, n); }
