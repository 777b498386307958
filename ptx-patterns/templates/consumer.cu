// The consumer: one kernel that runs every recorded child, enqueued right after the parent in the same stream.
//
// It is launched with as many blocks as fit on the GPU. All recorded children form one sequence of virtual blocks; a
// group of KLAP_CHILD_THREADS threads takes an equal contiguous share of it, searches the record of its first block
// once and then steps. Children of 2^16 blocks or more follow, each spread over all groups. The call of
// __klap_child_body is a marker: the child's own code is spliced in there, with its parameters read from the record and
// its special registers taken from the marker's arguments.
//
// Several groups share a physical block (KLAP_PACK) where children are small; children that need block-wide
// barriers or shared memory never come here.
//
// Constants: KLAP_CHILD_X, _Y, _Z, the child's block; KLAP_PACK; KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES;
// KLAP_GRID_1D when every child's grid has one row and one layer.
#include "queue.h"

#define KLAP_CHILD_THREADS (KLAP_CHILD_X * KLAP_CHILD_Y * KLAP_CHILD_Z)

extern "C" __device__ void __klap_child_body(const unsigned char* arguments, unsigned int ctaid_x, unsigned int ctaid_y,
                                             unsigned int ctaid_z, unsigned int nctaid_x, unsigned int nctaid_y,
                                             unsigned int nctaid_z, unsigned int tid_x, unsigned int tid_y,
                                             unsigned int tid_z);

// The last record whose first virtual block is not behind `block`: records of no blocks share their successor's prefix.
static __device__ __forceinline__ unsigned int find_record(const unsigned long long* prefix, unsigned int records,
                                                           unsigned long long block) {
  unsigned int low = 0, high = records;
  while (high - low > 1) {
    const unsigned int middle = low + (high - low) / 2;
    if (__ldg(prefix + middle) <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Counts this block out; the last one leaves the queue empty for the next parent.
static __device__ __forceinline__ void leave(KlapQueue* queue, unsigned int children) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&queue->exited, 1u) + 1u != gridDim.x) return;
  queue->packed = 0;
  queue->big = 0;
  queue->exited = 0;
  if (queue->report != nullptr) *reinterpret_cast<volatile unsigned long long*>(queue->report) += children;
}

extern "C" __global__ void __launch_bounds__(KLAP_CHILD_THREADS * KLAP_PACK) __klap_consumer(KlapQueue* queue) {
  const unsigned long long packed = queue->packed;
  const unsigned int records = static_cast<unsigned int>(packed) & KLAP_MAX_RECORDS;
  const unsigned long long blocks = packed >> KLAP_INDEX_BITS;
  const unsigned int big = queue->big;
  const unsigned long long* const prefix = queue->prefix;
  const unsigned char* const base = queue->records;

  const unsigned int thread = threadIdx.x % KLAP_CHILD_THREADS;
  const unsigned int tid_x = thread % KLAP_CHILD_X;
  const unsigned int tid_y = thread / KLAP_CHILD_X % KLAP_CHILD_Y;
  const unsigned int tid_z = thread / (KLAP_CHILD_X * KLAP_CHILD_Y);

  const unsigned int groups = gridDim.x * KLAP_PACK;
  const unsigned int mine = blockIdx.x * KLAP_PACK + threadIdx.x / KLAP_CHILD_THREADS;
  const unsigned long long share = blocks / groups, rest = blocks % groups;
  unsigned long long block = mine * share + (mine < rest ? mine : rest);
  unsigned long long left = share + (mine < rest ? 1u : 0u);
  unsigned int record = left != 0 ? find_record(prefix, records, block) : 0u;
  unsigned int big_done = 0;

#pragma unroll 1
  for (;;) {
    // One stretch: `count` virtual blocks of one child, from `linear` on, `step` apart.
    const unsigned char* current;
    unsigned long long linear, count, step;
    if (left != 0) {
      const unsigned long long begin = __ldg(prefix + record);
      const unsigned long long end = record + 1 < records ? __ldg(prefix + record + 1) : blocks;
      current = base + static_cast<unsigned long long>(record) * KLAP_RECORD_BYTES;
      linear = block - begin;
      count = end - block < left ? end - block : left;
      step = 1;
      block += count;
      left -= count;
      ++record;
      if (count == 0) continue;
    } else if (big_done < big) {
      const unsigned int index = queue->capacity - 1u - big_done++;
      current = base + static_cast<unsigned long long>(index) * KLAP_RECORD_BYTES;
      const uint4 grid = __ldg(reinterpret_cast<const uint4*>(current));
      const unsigned long long all = static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
      if (mine >= all) continue;
      linear = mine;
      count = (all - mine + groups - 1) / groups;
      step = groups;
    } else {
      break;
    }
    const uint4 grid = __ldg(reinterpret_cast<const uint4*>(current));
#pragma unroll 1
    for (; count != 0; --count, linear += step) {
#ifdef KLAP_GRID_1D
      const unsigned int x = static_cast<unsigned int>(linear), y = 0, z = 0;
#else
      const unsigned long long row = linear / grid.x;
      const unsigned int x = static_cast<unsigned int>(linear - row * grid.x);
      const unsigned int z = static_cast<unsigned int>(row / grid.y);
      const unsigned int y = static_cast<unsigned int>(row - static_cast<unsigned long long>(z) * grid.y);
#endif
      __klap_child_body(current + KLAP_ARGS_OFFSET, x, y, z, grid.x, grid.y, grid.z, tid_x, tid_y, tid_z);
    }
  }
  leave(queue, records + big);
}
