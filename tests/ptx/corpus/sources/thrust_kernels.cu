// Thrust's algorithms called by one thread of a kernel.

// by: nvcc
// archs: 80 90
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/inner_product.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/unique.h>
__global__ void one_thread(int* data, int* out, int n) {
  thrust::sort(thrust::seq, data, data + n);
  int* end = thrust::unique(thrust::seq, data, data + n);
  thrust::exclusive_scan(thrust::seq, data, end, out);
  out[0] += thrust::inner_product(thrust::seq, data, end, out, 0);
  out[1] += thrust::lower_bound(thrust::seq, data, end, 7) - data;
  thrust::set_union(thrust::seq, data, end, out, out + 5, out + n);
}
