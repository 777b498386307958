// CUB's device-wide algorithms: the kernels that a host call instantiates.

// by: nvcc
// archs: 75 90
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
struct Odd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};
void instantiate(void* temp, size_t bytes, int* in, int* out, int n) {
  cub::DeviceReduce::Sum(temp, bytes, in, out, n);
  cub::DeviceScan::ExclusiveSum(temp, bytes, in, out, n);
  cub::DeviceSelect::If(temp, bytes, in, out, out, n, Odd());
}
