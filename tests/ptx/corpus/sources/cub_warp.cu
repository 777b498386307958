// CUB's warp-wide algorithms.

// headers: cccl
// archs: 75 90
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};
__global__ void warps(int* data) {
  typedef cub::WarpScan<int> Scan;
  typedef cub::WarpReduce<double> Reduce;
  typedef cub::WarpMergeSort<int, 2, 32> Sort;
  __shared__ typename Scan::TempStorage scan;
  __shared__ typename Reduce::TempStorage reduce;
  __shared__ typename Sort::TempStorage sort;
  int v[2] = {data[threadIdx.x], data[threadIdx.x + 32]};
  Scan(scan).InclusiveSum(v[0], v[1]);
  double sum = Reduce(reduce).Sum(v[0]);
  Sort(sort).Sort(v, Less());
  data[threadIdx.x] = v[0] + v[1] + (int)sum;
}
