// Random numbers through cuRAND's device functions.

// headers: cuda
// archs: 80 90
#include <curand_kernel.h>
__global__ void estimate(unsigned long long seed, float* out, int n) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, threadIdx.x, 0, &state);
  curandStateXORWOW_t other;
  curand_init(seed, 0, threadIdx.x, &other);
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    float4 u = curand_uniform4(&state);
    sum += u.x * u.y + curand_normal(&other);
  }
  out[threadIdx.x] = sum;
}
