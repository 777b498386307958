// The children of the lanes of a warp, run by one launch of exactly their blocks.
//
// A block searches its child among the few of the launch and behaves from there on like the block CUDA would
// have started for it: `ret` ends the thread, and a barrier waits for the threads of this block only. The
// block's size is the child's own, whatever it is, so thread index and block size need no replacement.
//
// Everything is read from this kernel's own parameters. The first argument of the marker call is a place
// there, too: the number of bytes from the parameter's begin to the child's arguments.
//
// Constants: those of warp_records.h; KLAP_GRID_1D when every child's grid has one row and one layer.
#include "common/sequence.h"
#include "warp/warp_records.h"

extern "C" __device__ void __klap_child_body(unsigned long long arguments, unsigned int ctaid_x,
                                             unsigned int ctaid_y, unsigned int ctaid_z,
                                             unsigned int nctaid_x, unsigned int nctaid_y,
                                             unsigned int nctaid_z, unsigned int tid_x, unsigned int tid_y,
                                             unsigned int tid_z);

extern "C" __global__ void __klap_consumer(const __grid_constant__ KlapWarpArguments shared) {
  unsigned int child = 0, behind = shared.children;
  while (behind - child > 1) {
    const unsigned int middle = (child + behind) / 2;
    if (shared.first[middle] <= blockIdx.x) {
      child = middle;
    } else {
      behind = middle;
    }
  }
  const uint4 grid = shared.records[child].grid;
  const uint3 at = position_in(grid, blockIdx.x - shared.first[child]);
  const unsigned long long arguments =
      KLAP_RECORDS_OFFSET + KLAP_ARGS_OFFSET + static_cast<unsigned long long>(child) * KLAP_RECORD_BYTES;
  __klap_child_body(arguments, at.x, at.y, at.z, grid.x, grid.y, grid.z, threadIdx.x, threadIdx.y,
                    threadIdx.z);
}
