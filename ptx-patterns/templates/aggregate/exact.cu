// The exact grid: one kernel that runs every recorded child, launched from the device by the parent's last
// thread.
//
// Its blocks are the child's own: as many as all children have together, each of exactly the child's block
// size. So a block searches its child and its place in it, and from there on behaves like the block CUDA
// would have started. `ret` ends the thread, a barrier waits for the threads of this block only, and nothing
// of another child runs in it before or after. So all children with barriers, warp operations and shared
// memory can run here. Not all of them can run in consumer.cu, whose groups of threads run one block after
// another.
//
// Nothing is reset here: the parent did that before it launched. The next parent of the stream, which may
// overwrite the records, starts only when this kernel and its parent are complete.
//
// If children's blocks differ, all have as many threads as the largest. Threads that a child does not have
// end at once: for the code behind, they are lanes and warps that were never there.
//
// Constants: those of sizes.h, with KLAP_MOST_THREADS, the largest block of all, where blocks differ;
// KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES; those of record_grid.h; KLAP_GRID_1D when every child's grid has
// one row and one layer; KLAP_ONCE where there are arguments that only one thread stored.
#include "common/child.h"
#include "common/record_grid.h"
#include "common/sequence.h"
#include "common/sizes.h"

#ifndef KLAP_BLOCKS_DIFFER
#define KLAP_MOST_THREADS (KLAP_CHILD_X * KLAP_CHILD_Y * KLAP_CHILD_Z)
#endif

extern "C" __global__ void __launch_bounds__(KLAP_MOST_THREADS) __klap_consumer(KlapSequence sequence) {
  const unsigned long long block = sequence.first + blockIdx.x;
#if !defined(KLAP_BLOCKS_DIFFER) && KLAP_MOST_THREADS % 32 == 0
  const unsigned int record = find_record_as_warp(sequence.prefix, sequence.count, block);
#else
  const unsigned int record = find_record(sequence.prefix, sequence.count, block);
#endif
  const unsigned char* const current =
      sequence.records + static_cast<unsigned long long>(record) * KLAP_RECORD_BYTES;
  const uint4 grid = grid_of(current, true);
  const uint3 at = position_in(grid, static_cast<Linear>(block - __ldg(sequence.prefix + record)));
#ifdef KLAP_BLOCKS_DIFFER
  const uint3 size = block_of(grid.w);
  if (threadIdx.x >= size.x * size.y * size.z) asm volatile("exit;");  // now, not where the others end
  const uint3 place = place_in(size, threadIdx.x);
  __klap_child_body(current + KLAP_ARGS_OFFSET, at.x, at.y, at.z, grid.x, grid.y, grid.z, place.x, place.y,
                    place.z, size.x, size.y, size.z);
#else
  __klap_child_body(current + KLAP_ARGS_OFFSET, at.x, at.y, at.z, grid.x, grid.y, grid.z, threadIdx.x,
                    threadIdx.y, threadIdx.z);
#endif
}
