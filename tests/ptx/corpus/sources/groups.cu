// Cooperative groups: tiles, coalesced groups, the grid's barrier.

// headers: cuda
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void tiles(const int* in, int* out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int v = in[block.thread_rank()];
  v = cg::reduce(tile, v, cg::plus<int>());
  v += cg::inclusive_scan(tile, v);
  block.sync();
  if (v & 1) {
    auto active = cg::coalesced_threads();
    v += active.shfl(v, 0) + active.size();
  }
  auto parts = cg::labeled_partition(tile, v & 3);
  out[block.thread_rank()] = v + parts.thread_rank();
}
__global__ void whole_grid(int* data) {
  auto grid = cg::this_grid();
  data[grid.thread_rank()] += 1;
  grid.sync();
  data[grid.thread_rank()] += data[grid.size() - 1 - grid.thread_rank()];
}
