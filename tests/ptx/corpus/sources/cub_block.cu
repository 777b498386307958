// CUB's block-wide algorithms.

// headers: cccl
// archs: 75 90
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
__global__ void scan_and_reduce(const int* in, int* out) {
  typedef cub::BlockScan<int, 128> Scan;
  typedef cub::BlockReduce<float, 128> Reduce;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } temp;
  int v = in[threadIdx.x], total;
  Scan(temp.scan).ExclusiveSum(v, v, total);
  __syncthreads();
  float sum = Reduce(temp.reduce).Sum((float)v);
  out[threadIdx.x] = v + total + (int)sum;
}
__global__ void sort(unsigned* keys) {
  typedef cub::BlockRadixSort<unsigned, 128, 4> Sort;
  __shared__ typename Sort::TempStorage temp;
  unsigned mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = keys[threadIdx.x * 4 + i];
  Sort(temp).Sort(mine);
  for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = mine[i];
}
