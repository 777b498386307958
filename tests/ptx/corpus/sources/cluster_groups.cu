// Cooperative groups over a cluster.

// headers: cuda
// archs: 90 120
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void histogram(const int* in, int* out, int n) {
  extern __shared__ int bins[];
  auto cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < n; i += blockDim.x) bins[i] = 0;
  cluster.sync();
  int bin = in[cluster.thread_rank()];
  atomicAdd(cluster.map_shared_rank(bins, bin / n) + bin % n, 1);
  cluster.sync();
  if (cluster.block_rank() == 0) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}
