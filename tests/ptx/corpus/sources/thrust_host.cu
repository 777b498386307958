// Thrust's algorithms called by the host: transform, reduce and fill kernels with functors.

// by: nvcc
// archs: 90
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/transform_reduce.h>
struct Square {
  __host__ __device__ float operator()(float x) const { return x * x; }
};
float instantiate(float* data, int n) {
  thrust::device_ptr<float> first(data);
  thrust::transform(first, first + n, first, Square());
  return thrust::transform_reduce(first, first + n, Square(), 0.f, thrust::plus<float>());
}
